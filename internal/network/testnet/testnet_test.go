package testnet

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestMain(m *testing.M) { Main(m) }

func TestEveryAddressServesTheWeb(t *testing.T) {
	n := New(t)
	public := []netip.Addr{Web, Web6, Other, Other6}
	private := []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("192.168.0.1"), netip.MustParseAddr("172.16.0.1"), Gateway, Gateway6}
	for _, to := range slices.Concat(public, private, Metadata) {
		for _, scheme := range []string{"http", "https"} {
			resp, err := n.Client(to).Get(scheme + "://name.test/path?q")
			if err != nil {
				t.Error(err)
				continue
			}
			var e Echo
			if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
				t.Error(err)
			}
			_ = resp.Body.Close()
			if e.Host != "name.test" || e.Path != "/path?q" || e.To.Addr() != to || e.TLS != (scheme == "https") {
				t.Errorf("%s at %s: %+v", scheme, to, e)
			}
			if e.TLS && (e.SNI != "name.test" || e.Proto != "HTTP/2.0") {
				t.Errorf("TLS at %s: %+v", to, e)
			}
		}
	}
	if resp, err := n.Client(Web).Get("https://" + Web.String() + "/"); err != nil {
		t.Errorf("without a name: %v", err)
	} else {
		_ = resp.Body.Close()
	}
}

func TestEventsComeOneByOne(t *testing.T) {
	n := New(t)
	resp, err := n.Client(Web6).Get("http://name.test/events/a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, text := range []string{"one", "two"} {
		n.Web.Events("a") <- text
		got := make([]byte, len("data: one\n\n"))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "data: "+text+"\n\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	close(n.Web.Events("a"))
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

func TestOtherServers(t *testing.T) {
	n := New(t)
	for _, to := range []netip.Addr{Web, Web6, Metadata[0]} {
		c, err := n.Host.DialContext(t.Context(), "tcp", netip.AddrPortFrom(to, 22).String())
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(Banner))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != Banner {
			t.Errorf("port 22 of %s: %q, %v", to, got, err)
		}
		_ = c.Close()
		u, err := n.Host.DialContext(t.Context(), "udp", netip.AddrPortFrom(to, 443).String())
		if err != nil {
			t.Fatal(err)
		}
		_ = u.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = io.WriteString(u, "quic")
		if size, err := u.Read(got); err != nil || string(got[:size]) != "quic" {
			t.Errorf("datagrams at %s: %q, %v", to, got[:size], err)
		}
		_ = u.Close()
		if _, err := n.Host.DialContext(t.Context(), "tcp", netip.AddrPortFrom(to, 81).String()); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("port 81 of %s: %v", to, err)
		}
	}
	// A client that is not answered: its SYN is seen to leave, and that is all.
	seen := n.Capture(t)
	for _, to := range []netip.Addr{Nowhere, Nowhere6} {
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := n.Host.DialContext(ctx, "tcp", netip.AddrPortFrom(to, 443).String())
			failed <- err
		}()
		for len(seen.To(to)) == 0 {
			select {
			case err := <-failed:
				t.Fatalf("%s answers: %v", to, err)
			default:
			}
		}
		cancel()
		if err := <-failed; err == nil {
			t.Errorf("%s can be connected to", to)
		}
	}
}

func TestCapture(t *testing.T) {
	n := New(t)
	c := n.Capture(t)
	if got := c.Packets(); len(got) != 0 {
		t.Errorf("before anything was sent: %v", got)
	}
	ask(t, n, "udp", "x.test", dns.TypeA)
	if out, err := n.Host.Run("cat", "/proc/net/dev"); err != nil || !strings.Contains(out, "eth0:") {
		t.Errorf("a program on the host: %q, %v", out, err)
	}
	resp, err := n.Client(Web6).Get("http://x.test/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := c.Packets(); got[0].Protocol != "udp" || got[0].To != Resolver || got[0].From.Addr() != Host {
		t.Errorf("the first packet is %v", got[0])
	}
	if got := c.To(Web6); len(got) < 3 || !got[0].SYN || got[1].SYN || got[0].To.Port() != 80 || got[0].From.Addr() != Host6 {
		t.Errorf("the packets of the request are %v", got)
	}
	c.Forget()
	if got := c.Packets(); len(got) != 0 {
		t.Errorf("after all was forgotten: %v", got)
	}
}

func TestForward(t *testing.T) {
	n := New(t)
	l, err := n.Host.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the host's loopback is this process's")
	}
	resp, err := http.Get("http://" + n.Host.Forward(t, l.Addr().String()))
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// This process is on the host.
func TestHere(t *testing.T) {
	for range 2 { // the second finds no remains of the first
		t.Run("once", func(t *testing.T) {
			n := Here(t)
			n.DNS.Set("here.test", time.Minute, Web.String())
			r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, Resolver6.String())
			}}
			found, err := r.LookupHost(t.Context(), "here.test")
			if err != nil || !slices.Equal(found, []string{Web.String()}) {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}
