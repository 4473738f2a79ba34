package network

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// chunk is the most that is moved at a time: what fits into the pipes of package net.
const chunk = 1 << 20

// small is up to where bytes are copied: that costs no more than a pipe, which an
// idle connection then has none of.
const small = 16 << 10

var smallBuffers = sync.Pool{New: func() any { return new([small]byte) }}

// meter is what bytes are counted with on their way.
type meter struct {
	budget *budget
	count  *counter
}

// splice moves bytes both ways until both ends have said that they send no more,
// or one is gone; then both are closed. An end that is reset resets the other. The
// bytes stay in the kernel: io.CopyN between two TCP sockets is splice(2).
func splice(ctx context.Context, client, upstream *net.TCPConn, m meter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	var first error
	end := func(err error) {
		if err == nil {
			return
		}
		once.Do(func() {
			first = err
			cancel()
			reset(client)
			reset(upstream)
		})
	}
	// It ends a move that waits for bytes, too.
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		end(m.move(ctx, client, upstream, in))
	}()
	end(m.move(ctx, upstream, client, out))
	<-done
	if !stop() {
		end(context.Cause(ctx))
	}
	client.Close()
	upstream.Close()
	return first
}

// move moves bytes until src says that there are no more, and passes that on.
func (m meter) move(ctx context.Context, dst, src *net.TCPConn, d direction) error {
	raw, err := src.SyscallConn()
	if err != nil {
		return err
	}
	inline(raw)
	for {
		// It is waited for here and not in the copy, which has a pipe from a pool
		// for as long as it takes, and says what it moved at its end.
		n, err := available(raw)
		if err != nil {
			return err
		}
		if n == 0 {
			return dst.CloseWrite()
		}
		for n > 0 {
			granted, err := m.budget.take(ctx, d, min(n, chunk))
			if err != nil {
				return err
			}
			moved, err := carry(dst, src, granted)
			m.count.add(d, moved)
			if err != nil {
				return err
			}
			n -= granted
		}
	}
}

// carry moves n bytes that are there. Many of them stay in the kernel: io.CopyN
// between two TCP sockets is splice(2).
func carry(dst, src *net.TCPConn, n int) (int64, error) {
	if n > small {
		return io.CopyN(dst, src, int64(n))
	}
	b := smallBuffers.Get().(*[small]byte)
	defer smallBuffers.Put(b)
	if _, err := io.ReadFull(src, b[:n]); err != nil {
		return 0, err
	}
	written, err := dst.Write(b[:n])
	return int64(written), err
}

// inline has urgent data be data as other data is. What passes it on as it came
// would be more than anybody needs.
func inline(c syscall.RawConn) {
	_ = c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1) })
}

// available waits until there are bytes to read, and returns how many, or 0 at
// the end of them.
func available(c syscall.RawConn) (n int, err error) {
	ended := c.Read(func(fd uintptr) bool {
		if n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ); err != nil || n > 0 {
			return true
		}
		n, err = peek(fd, make([]byte, 1))
		return !errors.Is(err, unix.EAGAIN)
	})
	if ended != nil {
		return 0, ended
	}
	return n, err
}

// peek reads without taking away.
func peek(fd uintptr, b []byte) (int, error) {
	for {
		n, _, err := unix.Recvfrom(int(fd), b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// reset closes a connection in a way that its other end notices.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
