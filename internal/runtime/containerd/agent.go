package containerd

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Modes of the binaries. A program that those who run it cannot read is
// undumpable from its first instruction: nobody looks into a helper.
const (
	agentMode  = 0o755
	helperMode = 0o711
)

// extract writes a binary to a file below dir, named by its hash, removes those
// of other builds, and returns the path. A container keeps the file that it was
// made with, though its name may go.
func extract(dir, name string, binary []byte, mode os.FileMode) (string, error) {
	if len(binary) == 0 {
		return "", errors.New("there is none")
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(binary))
	at := filepath.Join(dir, hash, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o711); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Name() != hash {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return "", err
			}
		}
	}
	if have, err := os.ReadFile(at); err == nil && bytes.Equal(have, binary) {
		return at, os.Chmod(at, mode)
	}
	temp := at + ".new"
	if err := os.WriteFile(temp, binary, mode); err != nil {
		return "", err
	}
	// WriteFile's mode is subject to the umask.
	if err := os.Chmod(temp, mode); err != nil {
		return "", err
	}
	return at, os.Rename(temp, at)
}
