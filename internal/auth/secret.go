package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxSecretFile bounds a file that a secret is read from; beyond, it is the wrong file.
const maxSecretFile = 1 << 20

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readSecret returns a file's contents without the blanks around them.
func readSecret(path string) (string, error) {
	path = absolute(path)
	f, err := os.Open(path)
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("failed to read websocket auth secret %s: %s", path, reason(err))
	case len(data) > maxSecretFile:
		return "", fmt.Errorf("failed to read websocket auth secret %s: it has more than %d bytes", path, maxSecretFile)
	case !utf8.Valid(data):
		return "", fmt.Errorf("failed to read websocket auth secret %s: stream did not contain valid UTF-8", path)
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", fmt.Errorf("websocket auth secret %s must not be empty", path)
	}
	return secret, nil
}

// reason is an error of the file system without the path, which has been told.
func reason(err error) string {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return proto.ErrnoText(no)
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}
