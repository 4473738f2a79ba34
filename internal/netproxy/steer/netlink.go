package steer

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// request is a netlink message that is being made.
type request struct{ b []byte }

func newRequest(kind, flags uint16, head ...byte) *request {
	b := make([]byte, unix.SizeofNlMsghdr, 256)
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags|unix.NLM_F_REQUEST)
	return &request{append(b, head...)}
}

// attr appends an attribute.
func (r *request) attr(kind uint16, value []byte) *request {
	r.b = appendAttr(r.b, kind, value)
	return r
}

func appendAttr(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%unix.NLMSG_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// socket is a netlink socket of the calling thread's namespace.
type socket struct{ fd int }

func open(family int) (socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		return socket{}, fmt.Errorf("netlink: %w", err)
	}
	return socket{fd}, nil
}

func (s socket) close() { _ = unix.Close(s.fd) }

// do sends messages in one go, and waits until all that ask for it are
// acknowledged. The first error counts.
func (s socket) do(requests ...*request) error {
	var all []byte
	acks := 0
	for i, r := range requests {
		binary.NativeEndian.PutUint32(r.b, uint32(len(r.b)))
		binary.NativeEndian.PutUint32(r.b[8:], uint32(i+1))
		if binary.NativeEndian.Uint16(r.b[6:])&unix.NLM_F_ACK != 0 {
			acks++
		}
		all = append(all, r.b...)
	}
	if err := unix.Sendto(s.fd, all, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	b := make([]byte, 64<<10)
	for acks > 0 {
		n, _, err := unix.Recvfrom(s.fd, b, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for rest := b[:n]; len(rest) >= unix.SizeofNlMsghdr+4; {
			size := int(binary.NativeEndian.Uint32(rest))
			if size < unix.SizeofNlMsghdr+4 || size > len(rest) {
				break
			}
			if binary.NativeEndian.Uint16(rest[4:]) == unix.NLMSG_ERROR {
				if code := int32(binary.NativeEndian.Uint32(rest[unix.SizeofNlMsghdr:])); code != 0 {
					return unix.Errno(-code)
				}
				acks--
			}
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
	return nil
}
