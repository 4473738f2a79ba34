package transport

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/hangup"
	"github.com/exec-server/exec-server/internal/wsframe"
)

type wireKey struct{}

// wireConn is a TCP connection whose every write is whole: whoever writes, writes
// whole WebSocket frames. It also holds what is read to the limit of frames,
// which the library does not know.
type wireConn struct {
	*net.TCPConn
	mu sync.Mutex // makes writes whole; a peer's slowness holds up only itself

	meter  *wsframe.Meter // of what is read; nil before the upgrade
	door   *door
	ticket ticket // guarded by door.mu
}

// Close implements net.Conn.
func (c *wireConn) Close() error {
	c.door.leave(c)
	return c.TCPConn.Close()
}

// Read implements net.Conn.
func (c *wireConn) Read(p []byte) (int, error) {
	if c.meter == nil {
		return c.TCPConn.Read(p)
	}
	return c.meter.Read(c.TCPConn, p)
}

// Write implements net.Conn. Close frames of the library are swallowed: the
// protocol ends connections by ending TCP.
func (c *wireConn) Write(p []byte) (int, error) {
	if wsframe.IsClose(p) {
		return len(p), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.TCPConn.Write(p)
}

func (c *wireConn) writeAll(bufs net.Buffers) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := bufs.WriteTo(c.TCPConn)
	return err
}

// awaitEnd waits, in place of a read, until the connection has ended, which is
// true, or stop was closed. Unread data stays where it is.
func (c *wireConn) awaitEnd(stop <-chan struct{}) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	done, woken := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(woken)
		select {
		case <-stop:
			_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes the waiting read
		case <-done:
		}
	}()
	gone := false
	// Whatever happens on the connection wakes it for another look.
	err = raw.Read(func(fd uintptr) bool {
		gone = hangup.Now(int(fd))
		return gone
	})
	close(done)
	<-woken
	_ = c.SetReadDeadline(time.Time{})
	return gone || err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// info is what the kernel knows about the connection.
func (c *wireConn) info() (*unix.TCPInfo, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, errors.Join(err, infoErr)
}
