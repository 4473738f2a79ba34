package netproxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readAnswer(t *testing.T, b []byte) string {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil || m.ID != 7 || !m.Response || len(m.Questions) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	out := m.RCode.String()
	for _, r := range m.Answers {
		switch a := r.Body.(type) {
		case *dnsmessage.AResource:
			out += " " + netip.AddrFrom4(a.A).String()
		case *dnsmessage.AAAAResource:
			out += " " + netip.AddrFrom16(a.AAAA).String()
		}
	}
	return out
}

func TestNames(t *testing.T) {
	n := newNames()
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"a.example.", dnsmessage.TypeA, "RCodeSuccess 198.18.0.1"},
		{"A.Example.", dnsmessage.TypeAAAA, "RCodeSuccess fdc0:de00::1"},
		{"b.example.", dnsmessage.TypeA, "RCodeSuccess 198.18.0.2"},
		{"b.example.", dnsmessage.TypeMX, "RCodeSuccess"},
		{"b.example.", 65, "RCodeSuccess"}, // HTTPS
		{"localhost.", dnsmessage.TypeA, "RCodeSuccess 127.0.0.1"},
		{"localhost.", dnsmessage.TypeAAAA, "RCodeSuccess ::1"},
		{"1.2.3.4.", dnsmessage.TypeA, "RCodeNameError"},
		{"a b.", dnsmessage.TypeA, "RCodeNameError"},
		{".", dnsmessage.TypeA, "RCodeNameError"},
	} {
		b, err := n.answer(question(t, c.name, c.kind))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAnswer(t, b); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for addr, want := range map[string]string{
		"198.18.0.1": "a.example", "::ffff:198.18.0.2": "b.example", "fdc0:de00::1": "a.example", "1.2.3.4": "1.2.3.4",
		"198.18.0.0": "", "198.18.0.9": "", "198.19.255.255": "", "fdc0:de00::": "", "fdc0:de00::ffff:ffff": "",
	} {
		if h, ok := n.host(netip.MustParseAddr(addr)); h.String() != want || ok != (want != "") {
			t.Errorf("%s is %s, %v", addr, h, ok)
		}
	}
	n.byNo = append(n.byNo, make([]policy.Host, maxNames)...)
	if b, err := n.answer(question(t, "c.example.", dnsmessage.TypeA)); err != nil || readAnswer(t, b) != "RCodeServerFailure" {
		t.Errorf("too many: %v", err)
	}
	for _, b := range [][]byte{nil, {1}, make([]byte, 12), append([]byte{0, 1, 0x80, 0}, question(t, "a.", 1)[4:]...)} {
		if answer, err := n.answer(b); err == nil {
			t.Errorf("%x: %x", b, answer)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add(question(f, "a.example.", dnsmessage.TypeA))
	f.Add(question(f, "localhost.", dnsmessage.TypeAAAA))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := newNames()
		answer, err := n.answer(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response || len(m.Answers) > 1 {
			t.Errorf("%x is answered %x: %v", b, answer, err)
		}
	})
}

// Connections that were led here: their destinations are the test's to say.
func TestSteeredConnections(t *testing.T) {
	for _, c := range []struct {
		config            policy.Config
		to, want, decided string
	}{
		{policy.Config{}, "1.1.1.1:25", "hello", "domain allow baseline_policy allow socks5_tcp 1.1.1.1"},
		{policy.Config{}, "198.18.0.1:25", "hello", "domain allow baseline_policy allow socks5_tcp pub.example"},
		{policy.Config{}, "[fdc0:de00::1]:25", "hello", "domain allow baseline_policy allow socks5_tcp pub.example"},
		{policy.Config{}, "2.2.2.2:25", "reset", "domain deny baseline_policy not_allowed socks5_tcp 2.2.2.2"},
		{policy.Config{}, "10.0.0.1:25", "reset", "domain deny baseline_policy not_allowed_local socks5_tcp 10.0.0.1"},
		{policy.Config{}, "198.18.0.5:25", "reset", ""},
		{policy.Config{Limited: true}, "1.1.1.1:25", "reset", "non_domain deny mode_guard method_not_allowed socks5_tcp 1.1.1.1"},
	} {
		c.config.Domains = map[string]string{"1.1.1.1": "allow", "pub.example": "allow"}
		r := start(t, c.config)
		r.echo()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &steered{p: r.p, names: newNames(), destination: func(net.Conn) (netip.AddrPort, error) { return netip.MustParseAddrPort(c.to), nil }}
		h, _ := policy.ParseHost("pub.example")
		s.names.number(h)
		ctx, cancel := context.WithCancel(t.Context())
		var served sync.WaitGroup
		served.Go(func() { _ = s.serve(ctx, l) })
		got := ""
		conn, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(patience))
			if _, err = conn.Write([]byte("hello")); err == nil {
				b := make([]byte, 9)
				var size int
				size, err = conn.Read(b)
				got = string(b[:size])
			}
			_ = conn.Close()
		}
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			got = "reset"
		}
		if got != c.want {
			t.Errorf("%s: %q, %v", c.to, got, err)
		}
		if c.decided != "" {
			r.expect(c.decided)
		} else {
			r.expect()
		}
		cancel()
		served.Wait()
	}
}

func TestNamesOverStreams(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() { _ = newNames().serveStreams(ctx, l) })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	for range 2 {
		q := question(t, "a.example.", dnsmessage.TypeA)
		_, _ = conn.Write(append([]byte{0, byte(len(q))}, q...))
		b := make([]byte, 2+len(q)+16)
		size, err := conn.Read(b)
		if err != nil || readAnswer(t, b[2:size]) != "RCodeSuccess 198.18.0.1" {
			t.Errorf("got %x, %v", b[:size], err)
		}
	}
	_ = conn.Close()
	cancel()
	served.Wait()
}
