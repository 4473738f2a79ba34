package egress

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLittleWaitsUnsent(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := newClient(Options{}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var limit int
	if cerr := raw.Control(func(fd uintptr) {
		limit, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
	}); cerr != nil || err != nil || limit != unsent {
		t.Errorf("%d bytes may wait unsent, %v, %v", limit, cerr, err)
	}
}
