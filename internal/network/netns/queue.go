package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	queueNumber = 0
	queueLength = 512 // packets that wait for a verdict, in the kernel
	copyRange   = 256 // bytes of a packet that are looked at
)

// queue is the socket by which the kernel asks about packets. The kernel drops what
// it can not ask about: there is no such socket, it is full, or too many wait.
type queue struct {
	file *os.File
	raw  syscall.RawConn
	opts Options
	done chan struct{} // closed when nothing reads any more
}

// openQueue opens it in the thread's namespace.
func openQueue(o Options, log bool) (*queue, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open the packet queue: %w", err)
	}
	q := &queue{file: os.NewFile(uintptr(fd), "packet queue"), opts: o, done: make(chan struct{})}
	if q.raw, err = q.file.SyscallConn(); err == nil {
		err = q.bind(bindQueue())
	}
	if err == nil && log {
		err = q.bind(bindLog())
	}
	if err != nil {
		q.file.Close() //nolint:errcheck // the first error is the one to tell
		return nil, fmt.Errorf("open the packet queue: %w", err)
	}
	go q.read()
	return q, nil
}

// readSize has room for a message: the packet's start and about 200 bytes of what the
// kernel tells besides.
const readSize = 2048

// read asks the owner about one packet after the other, until the socket is closed.
func (q *queue) read() {
	defer close(q.done)
	buf := make([]byte, readSize)
	for {
		b, err := q.receive(buf)
		switch {
		case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EINTR):
			continue // what did not fit was dropped, and is sent again
		case err != nil:
			q.file.Close() //nolint:errcheck // or it was closed: from here on packets are dropped
			return
		}
		for len(b) > 0 {
			typ, body, rest, err := next(b)
			if err != nil {
				break
			}
			switch typ {
			case msgPacket:
				q.ask(parseQueued(body, attrPayload))
			case msgLogged:
				q.tell(parseQueued(body, attrLogPayload))
			}
			b = rest
		}
	}
}

// ask asks the owner about a packet.
func (q *queue) ask(p queued) {
	if !p.verdict {
		return
	}
	flow, syn, ok := parse(p.family, p.payload)
	switch {
	case !ok || flow.Protocol != unix.IPPROTO_TCP:
		q.verdict(p.id, verdictDrop, markRefused)
	case syn:
		q.opts.Decide(&Packet{Flow: flow, queue: q, id: p.id})
	default: // from the midst of a connection that is not known
		q.verdict(p.id, verdictAccept, markRefused)
	}
}

// tell tells the owner of a packet that the kernel refuses. Of TCP there are only
// answers to what was made by hand.
func (q *queue) tell(p queued) {
	flow, _, ok := parse(p.family, p.payload)
	if ok && flow.Protocol != unix.IPPROTO_TCP && q.opts.Denied != nil {
		q.opts.Denied(flow)
	}
}

// receive waits for a datagram of the kernel.
func (q *queue) receive(buf []byte) (b []byte, err error) {
	rerr := q.raw.Read(func(fd uintptr) bool {
		var n int
		var from unix.Sockaddr
		n, from, err = unix.Recvfrom(int(fd), buf, 0)
		b = buf[:max(n, 0)]
		if a, ok := from.(*unix.SockaddrNetlink); ok && a.Pid != 0 {
			b = nil // of another process
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if rerr != nil {
		return nil, rerr
	}
	return b, err
}

// verdict tells the kernel what to do with a packet. If that fails the packet has
// gone, or goes with the socket.
func (q *queue) verdict(id, verdict, mark uint32) {
	m := message(make([]byte, 0, 64), msgVerdict, 0)
	m = attribute(m, attrVerdictHeader, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, verdict), id)...)
	m = attribute(m, attrMark, binary.BigEndian.AppendUint32(nil, mark)...)
	q.send(finish(m)) //nolint:errcheck // see above
}

// send is done by the kernel at once. A socket that is being closed stays open while
// it lasts, so that it never goes to another one that got the number.
func (q *queue) send(m []byte) error {
	var err error
	cerr := q.raw.Control(func(fd uintptr) {
		_, err = unix.Write(int(fd), m)
	})
	if cerr != nil {
		return cerr
	}
	return err
}

func (q *queue) close() {
	q.file.Close() //nolint:errcheck // it may have ended by itself
	<-q.done
}
