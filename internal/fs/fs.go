// Package fs does the file work of the protocol: every fs/* method except
// fs/watchMissing.
//
// All of it happens on the calling goroutine, because that may be locked to a
// thread whose credentials are not those of the process. For the same reason
// nothing goes through /proc/self. Whatever a path leads to is hostile: files
// are looked at before and after they are opened, sizes are bounded, and no
// more descriptors are held than a path has components.
package fs

import (
	"syscall"

	"github.com/exec-server/exec-server/internal/proto"
)

// operation does the work of one request. It needs nothing of the message that
// it was decoded from.
type operation = func(*Files) (proto.Result, error)

// Methods maps a method's name to its decoder. A decoder turns params into an
// operation or refuses them with a *proto.Error. An operation fails with a
// *proto.Error or with an error that wraps a syscall.Errno.
var Methods = map[string]func(params proto.Value) (func(*Files) (proto.Result, error), error){
	"fs/readFile":        decodeReadFile,
	"fs/writeFile":       decodeWriteFile,
	"fs/createDirectory": decodeCreateDirectory,
	"fs/getMetadata":     decodeGetMetadata,
	"fs/canonicalize":    decodeCanonicalize,
	"fs/readDirectory":   decodeReadDirectory,
	"fs/walk":            decodeWalk,
	"fs/remove":          decodeRemove,
	"fs/copy":            decodeCopy,
	"fs/open":            decodeOpen,
	"fs/readBlock":       decodeReadBlock,
	"fs/writeBlock":      decodeWriteBlock,
	"fs/close":           decodeClose,
}

// target is the path that a request names and the conditions on reaching it.
type target struct {
	uri     proto.URI
	sandbox *proto.Sandbox
	follow  bool // links may be passed through
}

// targetParam reads the members "sandbox" and that of the path.
func targetParam(p *proto.Params, name string) target {
	return target{uri: p.URI(name), sandbox: p.SandboxParam(), follow: true}
}

// linkTargetParam also reads "followSymlinks", which not all methods have.
func linkTargetParam(p *proto.Params) target {
	t := targetParam(p, "path")
	t.follow = p.NullableBool("followSymlinks", true)
	return t
}

// pathMax is the system's limit on a path, in bytes with the final NUL.
const pathMax = 4096

// native is the path to work on. It refuses a path of another system, and what
// this one would not take as a whole anyway.
func (t target) native() (string, error) {
	path, err := t.uri.Native()
	if err != nil {
		return "", err
	}
	if t.follow && len(path) >= pathMax {
		return "", syscall.ENAMETOOLONG
	}
	return path, nil
}

// base64Param reads a required string of base64. What is wrong inside the
// string is the caller's to report, since methods differ in the code for it.
func base64Param(p *proto.Params, name string) (data []byte, bad error) {
	v := p.Required(name)
	if v.Kind != proto.String {
		p.Text(v)
		return nil, nil
	}
	return proto.DecodeBase64(v.Bytes())
}

// empty is the answer of operations that return nothing but an error.
func empty(err error) (proto.Result, error) {
	if err != nil {
		return nil, err
	}
	return proto.Empty{}, nil
}
