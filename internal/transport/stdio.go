package transport

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/exec-server/exec-server/internal/hangup"
	"github.com/exec-server/exec-server/internal/proto"
)

// stdioConn carries one message a line.
type stdioConn struct {
	r   io.Reader
	w   io.Writer
	out []byte

	// Unread bytes are buf[from:]; those before seen hold no newline. In front of
	// them is always room for a frame's header. A line and its end fit in.
	buf        []byte
	from, seen int
	ended      bool // nothing more comes from r

	closers []io.Closer
	closed  chan struct{}
	close   func() error
}

// Stdio returns the connection over a pair of streams such as standard input
// and output. closers are closed with it.
func Stdio(r io.Reader, w io.Writer, closers ...io.Closer) proto.Conn {
	c := &stdioConn{r: r, w: w, closers: closers, closed: make(chan struct{})}
	c.reset(nil)
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		var errs []error
		for _, closer := range c.closers {
			errs = append(errs, closer.Close())
		}
		return errors.Join(errs...)
	})
	return c
}

// AwaitEnd implements proto.Watcher. Only files can be watched.
func (c *stdioConn) AwaitEnd(stop <-chan struct{}) bool {
	either := make(chan struct{})
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer close(either)
		select {
		case <-stop:
		case <-c.closed:
		case <-over:
		}
	}()
	gone := false
	if f, ok := c.r.(syscall.Conn); ok {
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { gone = hangup.Await(int(fd), either) })
		}
	}
	if gone {
		return true
	}
	<-either
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// WriteFrames implements proto.Conn.
func (c *stdioConn) WriteFrames(frames []byte) error {
	c.out = c.out[:0]
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		c.out = append(append(c.out, f.Body()...), '\n')
	}
	_, err := c.w.Write(c.out)
	return err
}

// Close implements proto.Conn.
func (c *stdioConn) Close() error { return c.close() }
