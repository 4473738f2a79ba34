package fs

import "github.com/exec-server/exec-server/internal/proto"

// Confine does work with the files that a profile leaves, which may be nil. It
// may run it on another goroutine, and waits for it. writes says that the work
// changes files.
type Confine func(s *proto.Sandbox, writes bool, work func() error) error

const (
	reading = false
	writing = true
)

// within does work under the target's profile.
func (f *Files) within(s *proto.Sandbox, writes bool, work func() (proto.Result, error)) (result proto.Result, err error) {
	if f.confine == nil {
		if s != nil && s.Restricted {
			return nil, proto.Invalid("file operations cannot be confined here")
		}
		return work()
	}
	err = f.confine(s, writes, func() (err error) {
		result, err = work()
		return err
	})
	return result, err
}
