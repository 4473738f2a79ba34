package network

import (
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/hello"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// helloTime is how long a client may take to say which name it wants.
const helloTime = 10 * time.Second

// maxLooks bounds how often the same first bytes are looked at, since more may come one
// by one: what is not said by then is not said. A test's is less.
var maxLooks = 1024

var past = time.Unix(1, 0)

// ask finds out what the client says first, without taking it away. If the server
// is the first to speak, or nobody is for so long, the client has said nothing. The
// error is that the client is gone.
func ask(client, upstream *net.TCPConn, most time.Duration) (hello.Hello, error) {
	_ = client.SetReadDeadline(time.Now().Add(most))
	var once sync.Once
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if spoken(upstream) {
			once.Do(func() { _ = client.SetReadDeadline(past) })
		}
	}()
	h, err := listen(client)
	once.Do(func() {})
	_ = upstream.SetReadDeadline(past)
	<-watched
	_ = upstream.SetReadDeadline(time.Time{})
	_ = client.SetReadDeadline(time.Time{})
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return hello.Hello{}, nil
	}
	return h, err
}

// listen waits until a client has said enough, or that it says nothing more.
func listen(client *net.TCPConn) (h hello.Hello, err error) {
	raw, err := client.SyscallConn()
	if err != nil {
		return h, err
	}
	looks := 0
	ended := raw.Read(func(fd uintptr) bool {
		// Not for longer: who says nothing takes no memory.
		b := buffers.Get().(*[hello.Max]byte)
		defer buffers.Put(b)
		n, e := peek(fd, b[:])
		if errors.Is(e, unix.EAGAIN) {
			return false
		}
		if e != nil || n == 0 {
			err = e
			return true
		}
		done := false
		h, done = hello.Parse(b[:n])
		if looks++; !done && looks == maxLooks {
			h, done = hello.Hello{}, true
		}
		return done
	})
	if ended != nil {
		return hello.Hello{}, ended
	}
	return h, err
}

var buffers = sync.Pool{New: func() any { return new([hello.Max]byte) }}

// spoken waits until the server has said something, and tells whether it has: its
// end or its silence up to the deadline is nothing.
func spoken(upstream *net.TCPConn) (yes bool) {
	raw, err := upstream.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	_ = raw.Read(func(fd uintptr) bool {
		n, err := peek(fd, b[:])
		yes = err == nil && n > 0
		return !errors.Is(err, unix.EAGAIN)
	})
	return yes
}

// saying is what a hello means for the rules.
func saying(h hello.Hello) rules.Said {
	switch h.Kind {
	case hello.TLS:
		return rules.Said{App: rules.TLS, Name: h.Name, Hidden: h.Hidden}
	case hello.HTTP:
		return rules.Said{App: rules.HTTP, Name: h.Name}
	}
	return rules.Said{App: rules.TCP}
}
