package fs

import (
	"encoding/base64"
	"errors"
	"io"
	"math"
	"os"
	"syscall"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxBlock is the size in bytes of the largest block.
const maxBlock = 1 << 20

func decodeReadBlock(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsReadBlockParams")
	id, offset, size := p.String("handleId"), p.Uint("offset"), p.Uint("len")
	return func(f *Files) (proto.Result, error) {
		if err := checkID(id); err != nil {
			return nil, err
		}
		if size < 1 || size > maxBlock {
			return nil, proto.Invalid("file read block length must be between 1 and %d", maxBlock)
		}
		return f.readBlock(id, offset, int(size))
	}, p.Err()
}

// readBlock closes the handle if it fails.
func (f *Files) readBlock(id string, offset uint64, size int) (proto.Result, error) {
	h, file, err := f.get(id)
	if err != nil {
		return nil, err
	}
	chunk, n := make([]byte, size), 0
	if offset > math.MaxInt64 {
		err = syscall.EINVAL // as the system says about negative offsets
	} else {
		n, err = file.ReadAt(chunk, int64(offset))
	}
	if err != nil && err != io.EOF {
		f.drop(id, h)
		return nil, goneError(err, id)
	}
	return block{chunk: chunk[:n], eof: n < size}, nil
}

// goneError makes an unknown handle of one that was closed while in use.
func goneError(err error, id string) error {
	if errors.Is(err, os.ErrClosed) {
		return errUnknown(id)
	}
	return err
}

// block is the result of fs/readBlock.
type block struct {
	chunk []byte
	eof   bool
}

// AppendJSON implements proto.Result.
func (b block) AppendJSON(dst []byte) []byte {
	dst = proto.AppendBase64(append(dst, `{"chunk":`...), b.chunk)
	return append(proto.AppendBool(append(dst, `,"eof":`...), b.eof), '}')
}

// SizeJSON implements proto.Sizer.
func (b block) SizeJSON() int { return base64.StdEncoding.EncodedLen(len(b.chunk)) + 32 }

func decodeWriteBlock(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsWriteBlockParams")
	id, offset := p.String("handleId"), p.Uint("offset")
	chunk, bad := base64Param(p, "chunk")
	if bad != nil {
		p.Fail(proto.BadParams("%s", bad))
	}
	return func(f *Files) (proto.Result, error) {
		if err := checkID(id); err != nil {
			return nil, err
		}
		if len(chunk) < 1 || len(chunk) > maxBlock {
			return nil, proto.Invalid("file write block length must be between 1 and %d", maxBlock)
		}
		if offset > math.MaxInt64-uint64(len(chunk)) {
			return nil, proto.Invalid("file write range exceeds the signed 64-bit file offset limit")
		}
		_, file, err := f.get(id)
		if err != nil {
			return nil, err
		}
		_, err = file.WriteAt(chunk, int64(offset))
		return empty(goneError(err, id))
	}, p.Err()
}
