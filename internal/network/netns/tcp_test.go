package netns

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// outside are addresses that nobody has, with a port.
var outside = []string{outside4 + ":443", "[" + outside6 + "]:443"}

func TestRefuse(t *testing.T) {
	b := newBox(t)
	flows := make(chan Flow, 64)
	n := b.open(Options{Decide: func(p *Packet) {
		flows <- p.Flow
		p.Refuse()
		p.Accept() // comes too late
	}})
	accepted := b.acceptAll(n)
	for _, to := range outside {
		_, err := b.dial(net.Dialer{}, "tcp", to)
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", to, err)
		}
		f := wait(t, flows)
		if f.Dst.String() != to || f.Protocol != unix.IPPROTO_TCP {
			t.Errorf("asked about %+v in place of %s", f, to)
		}
		if a := f.Src.Addr(); a != Guest4 && a != Guest6 {
			t.Errorf("%s: from %v", to, a)
		}
	}
	if len(accepted) != 0 || len(flows) != 0 {
		t.Errorf("%d were accepted, and %d asked about, beyond that", len(accepted), len(flows))
	}
}

func TestAccept(t *testing.T) {
	b := newBox(t)
	n := b.open(Options{Decide: (*Packet).Accept})
	connections := b.acceptAll(n)
	for _, to := range outside {
		c, err := b.dial(net.Dialer{}, "tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		in := wait(t, connections)
		if in.original.String() != to {
			t.Errorf("the original destination is %v in place of %s", in.original, to)
		}
		if in.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("from %v in place of %v", in.RemoteAddr(), c.LocalAddr())
		}
		if c.RemoteAddr().String() != to {
			t.Errorf("the program is connected to %v", c.RemoteAddr())
		}
		io.WriteString(c, "question")
		c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(in); err != nil || string(got) != "question" {
			t.Errorf("%s: the listener read %q, %v", to, got, err)
		}
		io.WriteString(in, "answer")
		in.Close()
		if got, err := io.ReadAll(c); err != nil || string(got) != "answer" {
			t.Errorf("%s: the program read %q, %v", to, got, err)
		}
	}
}

func TestDropIsSilence(t *testing.T) {
	b := newBox(t)
	packets := make(chan *Packet, 64)
	n := b.open(Options{Decide: func(p *Packet) { packets <- p }})
	connections := b.acceptAll(n)
	fd := b.connecting(outside[0])
	wait(t, packets).Drop()
	wait(t, packets).Accept() // that it is sent again shows that nothing was answered
	if err := connected(t, fd); err != nil {
		t.Error(err)
	}
	wait(t, connections)
}

// A program may have given up while the verdict was outstanding.
func TestProgramGone(t *testing.T) {
	b := newBox(t)
	packets := make(chan *Packet, 64)
	n := b.open(Options{Decide: func(p *Packet) { packets <- p }})
	connections := b.acceptAll(n)
	fd := b.connecting(outside[0])
	p := wait(t, packets)
	// Shut down it is as closed, and its number is not another's before the end.
	if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil && err != unix.ENOTCONN {
		t.Fatal(err)
	}
	p.Accept()
	fd = b.connecting(outside[0])
	p = wait(t, packets)
	p.Accept()
	if err := connected(t, fd); err != nil {
		t.Error(err)
	}
	for wait(t, connections).RemoteAddr().String() != p.Src.String() {
	}
}

// The four numbers of a connection may be the same as those of one that has ended,
// however that ended.
func TestSameAddressesAgain(t *testing.T) {
	b := newBox(t)
	verdict := make(chan func(*Packet), 1)
	n := b.open(Options{Decide: func(p *Packet) { (<-verdict)(p) }})
	connections := b.acceptAll(n)
	for _, linger := range []int{-1, 0} {
		verdict <- (*Packet).Accept
		c, err := b.dial(net.Dialer{}, "tcp4", outside[0])
		if err != nil {
			t.Fatal(err)
		}
		in := wait(t, connections)
		in.Conn.(*net.TCPConn).SetLinger(linger)
		in.Close()
		io.ReadAll(c)
		from := c.LocalAddr()
		c.(*net.TCPConn).SetLinger(0) // it leaves no socket that waits
		c.Close()
		// It is asked about or comes to the listener as it is; either way it is whole.
		verdict <- (*Packet).Accept
		if _, err = b.dial(net.Dialer{LocalAddr: from, Control: reuse}, "tcp4", outside[0]); err != nil {
			t.Fatalf("linger %d: %v", linger, err)
		}
		in = wait(t, connections)
		if in.original != netip.MustParseAddrPort(outside[0]) || in.RemoteAddr().String() != from.String() {
			t.Errorf("linger %d: from %v to %v", linger, in.RemoteAddr(), in.original)
		}
		select {
		case <-verdict:
		default:
		}
	}
}

// Of packets that wait for a verdict there are never more than the kernel was told.
func TestManyWait(t *testing.T) {
	b := newBox(t)
	packets := make(chan *Packet, 4*queueLength)
	b.open(Options{Decide: func(p *Packet) { packets <- p }})
	for range queueLength + 50 {
		b.connecting(outside[0])
	}
	var waiting []*Packet
	for range queueLength {
		waiting = append(waiting, wait(t, packets))
	}
	if len(packets) != 0 {
		t.Errorf("%d more than %d were asked about", len(packets), queueLength)
	}
	for _, p := range waiting {
		go p.Refuse()
	}
	wait(t, packets).Refuse() // one that had been dropped is sent again
}
