package fs

import (
	"os"
	"sync"
	"syscall"

	"github.com/exec-server/exec-server/internal/proto"
)

// Limits of the handle table: handles a connection, bytes of an id.
const (
	maxHandles  = 128
	maxHandleID = 32
)

// Files holds the file handles of one connection.
type Files struct {
	confine Confine

	mu      sync.Mutex // guards the other fields, and file of each handle
	handles map[string]*handle
	closed  bool
}

// handle is an entry of the table. Its address tells it from another one that
// had the same id before or gets it later.
type handle struct {
	file *os.File // nil while it is being opened
}

// New returns an empty table. Without confine, restricting profiles are refused.
func New(confine Confine) *Files { return &Files{confine: confine, handles: map[string]*handle{}} }

// Close closes all handles. Operations that still run fail or finish, later
// ones find no handle and open none.
func (f *Files) Close() {
	f.mu.Lock()
	open := f.handles
	f.handles, f.closed = nil, true
	f.mu.Unlock()
	for _, h := range open {
		h.close()
	}
}

// close closes a handle that the table does not hold any more.
func (h *handle) close() {
	if h.file != nil {
		_ = h.file.Close() // the protocol has no answer for it
	}
}

// reserve takes an id for a file that is about to be opened.
func (f *Files) reserve(id string) (*handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, syscall.EBADF
	case f.handles[id] != nil:
		return nil, proto.Invalid("file handle `%s` already exists", id)
	case len(f.handles) >= maxHandles:
		return nil, proto.Invalid("at most %d file handles may be open per connection", maxHandles)
	}
	h := &handle{}
	f.handles[id] = h
	return h, nil
}

// fill puts the file into a reserved handle. It reports false if the handle was
// closed meanwhile; the file is then still the caller's.
func (f *Files) fill(id string, h *handle, file *os.File) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handles[id] != h {
		return false
	}
	h.file = file
	return true
}

// get returns an open handle and its file.
func (f *Files) get(id string) (*handle, *os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.handles[id]; h != nil && h.file != nil {
		return h, h.file, nil
	}
	return nil, nil, errUnknown(id)
}

func errUnknown(id string) error {
	return proto.Errorf(proto.CodeNotFound, "unknown file handle `%s`", id)
}

// drop closes the handle with that id, if there is one; with a handle given,
// only that one.
func (f *Files) drop(id string, only *handle) {
	f.mu.Lock()
	h := f.handles[id]
	if h == nil || only != nil && h != only {
		f.mu.Unlock()
		return
	}
	delete(f.handles, id)
	f.mu.Unlock()
	h.close()
}
