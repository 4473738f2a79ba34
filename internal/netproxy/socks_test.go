package netproxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

func TestConnect(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub})
	r.echo()
	c := r.dial(r.web)
	c.send("CONNECT pub.example:443 HTTP/1.1\r\nHost: pub.example:443\r\n\r\nahead ")
	res, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"})
	if err != nil || res.StatusCode != 200 || len(res.Header) != 1 {
		t.Fatalf("%v %v", res, err)
	}
	c.send("and more")
	tcp, _ := c.Conn.(*net.TCPConn)
	_ = tcp.CloseWrite()
	if all, err := io.ReadAll(c.r); err != nil || string(all) != "ahead and more" {
		t.Errorf("%q %v", all, err)
	}
	r.expect("domain allow baseline_policy allow https_connect pub.example CONNECT")
}

func TestConnectsThatFail(t *testing.T) {
	for _, c := range []struct {
		config         policy.Config
		target, status string
		decided        []string
	}{
		{policy.Config{}, "x.example:443", "403 blocked-by-allowlist Domain not in allowlist.", []string{"domain deny baseline_policy not_allowed https_connect x.example CONNECT"}},
		{policy.Config{}, "[::1]:443", "403 blocked-by-allowlist Sandbox policy blocks local/private network addresses.", []string{"domain deny baseline_policy not_allowed_local https_connect ::1 CONNECT"}},
		{policy.Config{}, "a..b:443", "400  missing authority", nil},
		{policy.Config{}, "/", "400  missing authority", nil},
		{policy.Config{Domains: allowPub, Limited: true}, "pub.example:443", "403 blocked-by-mitm-required MITM required for limited HTTPS.", []string{
			"domain allow baseline_policy allow https_connect pub.example CONNECT", "non_domain deny mode_guard mitm_required https_connect pub.example CONNECT"}},
	} {
		r := start(t, c.config)
		res, body := r.ask("CONNECT", c.target, "Host: x\r\n", "")
		if got := res.Status[:4] + res.Header.Get("X-Proxy-Error") + " " + body; got != c.status {
			t.Errorf("%s: %q, want %q", c.target, got, c.status)
		}
		r.expect(c.decided...)
	}
	r := start(t, policy.Config{Domains: allowPub})
	r.origin = "127.0.0.1:1"
	c := r.dial(r.web)
	c.send("CONNECT pub.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 OK\r\n") {
		t.Errorf("%q %v", all, err)
	}
}

const greeting = "\x05\x01\x00"

// name is a request of SOCKS5 for a name.
func name(command byte, host string, port uint16) string {
	return string(append(append([]byte{5, command, 0, 3, byte(len(host))}, host...), byte(port>>8), byte(port)))
}

func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
		c.t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func (c *client) ends() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		c.t.Errorf("got %q, %v, want the end", rest, err)
	}
}

func TestSOCKS(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub, SOCKS: true})
	r.echo()
	c := r.dial(r.socks)
	c.send(greeting + name(1, "Pub.Example.", 443) + "hello")
	c.expect("\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01")
	c.expectAny(2) // the port
	c.expect("hello")
	tcp, _ := c.Conn.(*net.TCPConn)
	_ = tcp.CloseWrite()
	c.ends()
	r.expect("domain allow baseline_policy allow socks5_tcp pub.example")
	if r.dialed[0] != "1.1.1.1:443" {
		t.Errorf("dialed %v", r.dialed)
	}
}

func (c *client) expectAny(n int) {
	c.t.Helper()
	if _, err := io.ReadFull(c.r, make([]byte, n)); err != nil {
		c.t.Fatal(err)
	}
}

func TestSOCKSThatFails(t *testing.T) {
	const no = "\x00\x01\x00\x00\x00\x00\x00\x00"
	for _, c := range []struct{ what, send, want, decided string }{
		{"denied", greeting + name(1, "x.example", 80), "\x05\x00\x05\x02" + no, "domain deny baseline_policy not_allowed socks5_tcp x.example"},
		{"local", greeting + "\x05\x01\x00\x04" + string(netip.IPv6Loopback().AsSlice()) + "\x00\x50", "\x05\x00\x05\x02" + no, "domain deny baseline_policy not_allowed_local socks5_tcp ::1"},
		{"mapped", greeting + "\x05\x01\x00\x04" + string(netip.MustParseAddr("::ffff:10.0.0.1").AsSlice()) + "\x00\x50", "\x05\x00\x05\x02" + no, "domain deny baseline_policy not_allowed_local socks5_tcp ::ffff:10.0.0.1"},
		{"refused", greeting + name(1, "pub.example", 80), "\x05\x00\x05\x05" + no, "domain allow baseline_policy allow socks5_tcp pub.example"},
		{"bind", greeting + name(2, "pub.example", 80), "\x05\x00\x05\x07" + no, ""},
		{"datagrams", greeting + name(3, "pub.example", 80), "\x05\x00\x05\x07" + no, ""},
		{"no address", greeting + "\x05\x01\x00\x09aaa", "\x05\x00", ""},
		{"no name", greeting + name(1, "", 80), "\x05\x00", ""},
		{"odd name", greeting + name(1, "\xff\xfe", 80), "\x05\x00", ""},
		{"no method", "\x05\x01\x02", "\x05\xff", ""},
		{"version 4", "\x04\x01\x00", "", ""},
		{"version 4 later", greeting + "\x04\x01\x00\x01", "\x05\x00", ""},
	} {
		r := start(t, policy.Config{Domains: allowPub, SOCKS: true})
		r.origin = "127.0.0.1:1"
		conn := r.dial(r.socks)
		conn.send(c.send)
		conn.expect(c.want)
		conn.ends()
		if c.decided == "" {
			r.expect()
		} else {
			r.expect(c.decided)
		}
	}
	r := start(t, policy.Config{Domains: allowPub, SOCKS: true, Limited: true})
	c := r.dial(r.socks)
	c.send(greeting + name(1, "pub.example", 80))
	c.expect("\x05\x00\x05\x02" + no)
	c.ends()
	r.expect("non_domain deny mode_guard method_not_allowed socks5_tcp pub.example")
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte(greeting + name(1, "a.example", 1)))
	f.Add([]byte(greeting + "\x05\x01\x00\x04" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(_ *testing.T, in []byte) {
		_, host, _, err := handshake(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(in), io.Discard})
		if err == nil {
			policy.ParseHost(host)
		}
		if host, port, data, ok := parseDatagram(in); ok && len(data) > len(in) {
			panic(host + string(rune(port)))
		}
	})
}

// udpRig is a proxy that relays datagrams, and an origin that echoes them.
func udpRig(t *testing.T, c policy.Config) (r *rig, origin *net.UDPConn) {
	t.Helper()
	c.SOCKS, c.UDP = true, true
	r = start(t, c)
	origin, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = origin.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := origin.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = origin.WriteToUDPAddrPort(append([]byte("re:"), b[:n]...), from)
		}
	}()
	return r, origin
}

// associate opens an association, and a socket that is connected to the relay.
func (r *rig) associate() (held *client, conn *net.UDPConn) {
	r.t.Helper()
	held = r.dial(r.socks)
	held.send(greeting + "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00")
	held.expect("\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01")
	var port [2]byte
	if _, err := io.ReadFull(held.r, port[:]); err != nil {
		r.t.Fatal(err)
	}
	at := netip.AddrPortFrom(loopback, uint16(port[0])<<8|uint16(port[1]))
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return held, conn
}

func datagram(to netip.AddrPort, text string) []byte {
	return append(appendSocksAddress([]byte{0, 0, 0}, to), text...)
}

func TestDatagrams(t *testing.T) {
	r, origin := udpRig(t, policy.Config{Domains: map[string]string{"127.0.0.1": "allow"}})
	at, _ := netip.ParseAddrPort(origin.LocalAddr().String())
	held, conn := r.associate()
	b := make([]byte, 100)
	for range 3 {
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write(datagram(at, "hi")); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(b)
		if err != nil || !bytes.Equal(b[:n], datagram(at, "re:hi")) {
			t.Fatalf("%q %v", b[:n], err)
		}
	}
	r.expect("domain allow baseline_policy allow socks5_udp 127.0.0.1") // once
	// A fragment, and what is not allowed, go nowhere; what is allowed still does.
	_, _ = conn.Write(append([]byte{0, 0, 1}, datagram(at, "lost")[3:]...))
	_, _ = conn.Write(datagram(netip.MustParseAddrPort("127.0.0.2:9"), "lost"))
	_, _ = conn.Write([]byte{0, 0})
	_, _ = conn.Write(datagram(at, "there"))
	if n, err := conn.Read(b); err != nil || !bytes.Equal(b[:n], datagram(at, "re:there")) {
		t.Errorf("%q %v", b[:n], err)
	}
	r.eventually(func() bool {
		return slices.Equal(r.decided, []string{"domain deny baseline_policy not_allowed_local socks5_udp 127.0.0.2"})
	})
	// The leave ends with the connection.
	_ = held.Close()
	for end := time.Now().Add(patience); ; {
		_, _ = conn.Write(datagram(at, "late"))
		_ = conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := conn.Read(b); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the association does not end")
		}
	}
}

func TestDatagramsInLimitedMode(t *testing.T) {
	r, origin := udpRig(t, policy.Config{Domains: map[string]string{"127.0.0.1": "allow"}, Limited: true})
	at, _ := netip.ParseAddrPort(origin.LocalAddr().String())
	_, conn := r.associate()
	_, _ = conn.Write(datagram(at, "hi"))
	r.eventually(func() bool {
		return slices.Equal(r.decided, []string{"non_domain deny mode_guard method_not_allowed socks5_udp 127.0.0.1"})
	})
}

// eventually waits until cond, called with mu held, is true.
func (r *rig) eventually(cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		ok := cond()
		decided := slices.Clone(r.decided)
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("it does not come; decided %q", decided)
		}
	}
}
