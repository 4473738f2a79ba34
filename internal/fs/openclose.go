package fs

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

func checkID(id string) error {
	if len(id) > maxHandleID {
		return proto.Invalid("file handle ID must not exceed %d bytes", maxHandleID)
	}
	return nil
}

func decodeOpen(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsOpenParams")
	id, t := p.String("handleId"), targetParam(p, "path")
	mode := p.Variant(params.Get("mode"), "read", "replace")
	flags := unix.O_RDONLY
	if mode == "replace" {
		flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	}
	return func(f *Files) (proto.Result, error) {
		if err := checkID(id); err != nil {
			return nil, err
		}
		h, err := f.reserve(id)
		if err != nil {
			return nil, err
		}
		var file *os.File
		_, err = f.within(t.sandbox, mode == "replace", func() (_ proto.Result, err error) {
			file, err = t.open(flags)
			return nil, err
		})
		if err != nil {
			f.drop(id, h)
			return nil, err
		}
		if !f.fill(id, h, file) {
			_ = file.Close()
		}
		return proto.JSON(append(proto.AppendString([]byte(`{"handleId":`), id), '}')), nil
	}, p.Err()
}

func (t target) open(flags int) (*os.File, error) {
	at, err := t.place()
	if err != nil {
		return nil, err
	}
	defer at.close()
	file, _, err := at.open(flags, 0o666)
	return file, err
}

func decodeClose(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsCloseParams")
	id := p.String("handleId")
	return func(f *Files) (proto.Result, error) {
		if err := checkID(id); err != nil {
			return nil, err
		}
		f.drop(id, nil)
		return proto.Empty{}, nil
	}, p.Err()
}
