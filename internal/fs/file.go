package fs

import (
	"encoding/base64"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxFile is the size in bytes up to which a file is read as a whole.
const maxFile = 512 << 20

func decodeReadFile(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsReadFileParams")
	t := linkTargetParam(p)
	return func(f *Files) (proto.Result, error) {
		return f.within(t.sandbox, reading, func() (proto.Result, error) {
			data, err := t.readFile()
			if err != nil {
				return nil, err
			}
			return contents(data), nil
		})
	}, p.Err()
}

func (t target) readFile() ([]byte, error) {
	at, err := t.place()
	if err != nil {
		return nil, err
	}
	defer at.close()
	file, st, err := at.open(unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, st.Size, maxFile)
}

// readAll reads a file of about size bytes to its end. The size is a hint only:
// files in /proc say 0, others grow while they are read.
func readAll(file *os.File, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, errTooLarge()
	}
	data := make([]byte, 0, max(size, 0)+512)
	for {
		n, err := file.ReadAt(data[len(data):cap(data)], int64(len(data)))
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, errTooLarge()
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
		data = append(data, 0)[:len(data)]
	}
}

func errTooLarge() error {
	return proto.Invalid("file is too large to read: limit is %d bytes", maxFile)
}

// contents is the result of fs/readFile.
type contents []byte

// AppendJSON implements proto.Result.
func (c contents) AppendJSON(dst []byte) []byte {
	return append(proto.AppendBase64(append(dst, `{"dataBase64":`...), c), '}')
}

// SizeJSON implements proto.Sizer.
func (c contents) SizeJSON() int { return base64.StdEncoding.EncodedLen(len(c)) + 32 }

func decodeWriteFile(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsWriteFileParams")
	t := linkTargetParam(p)
	data, bad := base64Param(p, "dataBase64")
	return func(f *Files) (proto.Result, error) {
		if bad != nil {
			return nil, proto.Invalid("fs/writeFile requires valid base64 dataBase64: %s", bad)
		}
		return f.within(t.sandbox, writing, func() (proto.Result, error) { return empty(t.writeFile(data)) })
	}, p.Err()
}

// writeFile replaces the contents in place, so that inode, mode, owner and other
// links stay. It is not atomic: if it fails half-way, for want of space say, the
// file holds the first part of data.
func (t target) writeFile(data []byte) error {
	at, err := t.place()
	if err != nil {
		return err
	}
	defer at.close()
	file, _, err := at.open(unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	if closed := file.Close(); err == nil {
		err = closed // where quota errors of network file systems come up
	}
	return err
}
