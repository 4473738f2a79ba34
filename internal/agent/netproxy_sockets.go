package agent

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/netproxy/steer"
)

// proxySockets are what a proxy process is given to serve.
type proxySockets struct {
	files []int    // in the order in which it takes them
	ports []uint16 // of each, on 127.0.0.1
}

// open adds a socket of the calling thread's network namespace: a listener, or
// one for datagrams.
func (s *proxySockets) open(kind int) error {
	return s.openAt(kind, unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

// openAt is open for another address than that of the loopback.
func (s *proxySockets) openAt(kind, family int, at unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.files = append(s.files, fd)
	if err := unix.Bind(fd, at); err != nil {
		return err
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 128); err != nil {
			return err
		}
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	switch in := bound.(type) {
	case *unix.SockaddrInet4:
		s.ports = append(s.ports, uint16(in.Port))
	case *unix.SockaddrInet6:
		s.ports = append(s.ports, uint16(in.Port))
	default:
		return unix.EAFNOSUPPORT
	}
	return nil
}

// steer has everything that is connected to in the calling thread's network
// namespace, which has nothing but a loopback, lead to sockets that it adds: in the
// order of policy.Config.Steered.
func (s *proxySockets) steer() error {
	if err := steer.Prepare(); err != nil {
		return err
	}
	first := len(s.ports)
	for _, k := range []struct {
		kind, family int
		at           unix.Sockaddr
	}{
		{unix.SOCK_STREAM, unix.AF_INET6, &unix.SockaddrInet6{}}, // of both families
		{unix.SOCK_STREAM, unix.AF_INET6, &unix.SockaddrInet6{}},
		{unix.SOCK_DGRAM, unix.AF_INET, &unix.SockaddrInet4{Addr: steer.Gateway4.As4()}},
		{unix.SOCK_DGRAM, unix.AF_INET6, &unix.SockaddrInet6{Addr: steer.Gateway6.As16()}},
	} {
		if err := s.openAt(k.kind, k.family, k.at); err != nil {
			return err
		}
	}
	ports := s.ports[first:]
	return steer.Steer(steer.Ports{TCP: ports[0], DNSOverTCP: ports[1], DNS4: ports[2], DNS6: ports[3]})
}

// steerable says whether this machine has what steer needs. It tries.
var steerable = sync.OnceValue(func() bool {
	ok := false
	err := confine.OwnNetwork(func() error {
		var s proxySockets
		defer s.close()
		err := s.steer()
		ok = err == nil
		return err
	})
	return err == nil && ok
})

func (s *proxySockets) close() {
	for _, fd := range s.files {
		_ = unix.Close(fd)
	}
	s.files = nil
}
