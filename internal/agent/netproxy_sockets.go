package agent

import (
	"golang.org/x/sys/unix"
)

// proxySockets are what a proxy process is given to serve.
type proxySockets struct {
	files []int    // in the order in which it takes them
	ports []uint16 // of each, on 127.0.0.1
}

// open adds a socket of the calling thread's network namespace: a listener, or
// one for datagrams.
func (s *proxySockets) open(kind int) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.files = append(s.files, fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 128); err != nil {
			return err
		}
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	in, ok := at.(*unix.SockaddrInet4)
	if !ok {
		return unix.EAFNOSUPPORT
	}
	s.ports = append(s.ports, uint16(in.Port))
	return nil
}

func (s *proxySockets) close() {
	for _, fd := range s.files {
		_ = unix.Close(fd)
	}
	s.files = nil
}
