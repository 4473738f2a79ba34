// Package watch is fs/watchMissing: a notification, once, when something that
// is not there may have appeared.
//
// A watch is an inotify instance. What waits for it is parked in the runtime's
// poller and is no thread. Directories are looked at on the calling goroutine,
// because that may be locked to a thread whose credentials are not those of the
// process.
package watch

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxPaths is how many missing paths a watch may have.
const maxPaths = 64

// Request is what fs/watchMissing asks for.
type Request struct {
	id         uint64
	missing    []proto.URI
	present    proto.URI
	hasPresent bool
}

// Decode reads the params of fs/watchMissing. Its error is a *proto.Error.
func Decode(params proto.Value) (*Request, error) {
	p := proto.ParamsOf(params, "FsWatchMissingParams")
	r := &Request{id: p.Uint("watchId"), missing: p.URIs(p.Required("missing"))}
	r.present, r.hasPresent = p.OptURI("present")
	return r, p.Err()
}

// Slot holds the watch of a connection, which is one at most. The zero value is
// ready, and costs nothing.
type Slot struct {
	mu      sync.Mutex // guards all below; not held over system calls on paths
	last    uint64     // the greatest id so far
	current *Watch
	closed  bool
}

// Start ends the watch that there is and starts another. It is nil if what was
// asked for cannot be watched. An id that does not grow changes nothing.
func (s *Slot) Start(r *Request) *Watch {
	if !s.supersede(r.id) {
		return nil
	}
	w := r.begin()
	if w == nil {
		return nil
	}
	w.slot, w.id = s, r.id
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.last != r.id { // a newer one came meanwhile
		_ = w.file.Close() // nothing was ever read from it
		return nil
	}
	s.current = w
	return w
}

// supersede ends the current watch if the id is greater than all before.
func (s *Slot) supersede(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || id <= s.last {
		return false
	}
	s.last = id
	s.endLocked()
	return true
}

func (s *Slot) endLocked() {
	if s.current != nil {
		_ = s.current.file.Close() // wakes whoever reads it
		s.current = nil
	}
}

// Close ends the watch, and any that is still being started.
func (s *Slot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.endLocked()
}

// Watch is a watch that waits for something to happen.
type Watch struct {
	slot *Slot
	id   uint64
	*names
	file *os.File
}

// begin sets a watch up, or returns nil.
func (r *Request) begin() *Watch {
	if len(r.missing) == 0 || len(r.missing) > maxPaths {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil // too many of them: the harness looks for itself
	}
	n := newNames(fd)
	if !r.addTo(n) {
		_ = unix.Close(fd)
		return nil
	}
	return &Watch{names: n, file: os.NewFile(uintptr(fd), "inotify")}
}

func (r *Request) addTo(n *names) bool {
	for _, uri := range r.missing {
		path, err := uri.Native()
		if err != nil || !n.add(path, false) {
			return false
		}
	}
	if !r.hasPresent {
		return true
	}
	path, err := r.present.Native()
	return err == nil && n.add(path, true)
}

// Run waits until one of the paths may have appeared, or the one that was there
// has changed, and then sends the notification. It returns at once when the
// watch is ended. Whatever happened since Start counts.
func (w *Watch) Run(send func(frames []byte)) {
	buf := make([]byte, 4096) // more than an event has at most
	for {
		n, err := w.file.Read(buf)
		if err != nil && !w.alive() {
			return
		}
		if err != nil || w.matches(buf[:n]) {
			break
		}
	}
	if !w.finish() {
		return
	}
	f := append(proto.NewFrame(64), `{"method":"fs/missingChanged","params":{"watchId":`...)
	f = append(proto.AppendUint(f, w.id), "}}"...)
	send(proto.Frame(f).Seal())
}

func (w *Watch) alive() bool {
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	return w.slot.current == w
}

// finish takes the watch out of its slot. It reports false if it had been ended.
func (w *Watch) finish() bool {
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	if w.slot.current != w {
		return false
	}
	w.slot.endLocked()
	return true
}
