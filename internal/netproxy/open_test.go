package netproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/netproxy/masking"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

const secret = "abc01234567890123456789"

// masked is a rig whose command has a placeholder for a credential of
// api.example.com.
type masked struct {
	*rig
	placeholder string
	trusted     *x509.CertPool // what the command trusts
	origin      *x509.CertPool // what would let it know the origin itself
}

func startMasked(t *testing.T, c policy.Config) *masked {
	t.Helper()
	text, err := masking.Answer([]byte(`{"env":{"A":"` + secret + `"},"providers":{"my":{"env":["A"],"patterns":["abc[0-9]{20}"],` +
		`"url_prefixes":["https://api.example.com/v1","http://127.0.0.1:81"],"auth":["bearer"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var r masking.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	c.Masking = r.Proxy
	c.Domains = map[string]string{"api.example.com": "allow", "www.example.com": "allow", "127.0.0.1": "allow"}
	m := &masked{rig: start(t, c), placeholder: r.Env["A"], trusted: x509.NewCertPool(), origin: x509.NewCertPool()}
	m.names["api.example.com"], m.names["www.example.com"] = []string{"1.1.1.1"}, []string{"1.1.1.2"}
	m.trusted.AppendCertsFromPEM([]byte(r.Bundle))
	// The origin's certificate is for the names that the test's library gives it.
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n%s\n", r.Header.Get("Authorization"))
			_, _ = io.Copy(conn, buffered)
			_ = conn.Close()
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Proto, r.Method, r.URL, r.Header.Get("Authorization"), body)
	}))
	origin.EnableHTTP2 = true
	origin.Config.ErrorLog = log.New(io.Discard, "", 0)
	origin.StartTLS()
	t.Cleanup(origin.Close)
	m.rig.origin = origin.Listener.Addr().String()
	m.origin.AddCert(origin.Certificate())
	m.p.roots = m.origin
	return m
}

// connect opens a tunnel by CONNECT.
func (m *masked) connect(authority string) net.Conn {
	m.t.Helper()
	c := m.dial(m.web)
	c.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n")
	if res, err := http.ReadResponse(c.r, &http.Request{Method: http.MethodConnect}); err != nil || res.StatusCode != http.StatusOK {
		m.t.Fatalf("CONNECT: %v, %v", res, err)
	}
	return c.Conn
}

// socksTo opens a tunnel by SOCKS5, to port 443.
func (m *masked) socksTo(host string) net.Conn {
	m.t.Helper()
	c := m.dial(m.socks)
	c.send("\x05\x01\x00\x05\x01\x00\x03" + string(rune(len(host))) + host + "\x01\xbb")
	if _, err := io.ReadFull(c.Conn, make([]byte, 12)); err != nil {
		m.t.Fatal(err)
	}
	return c.Conn
}

// over is what a client gets that speaks TLS with name over a connection.
func over(conn net.Conn, name string, trusts *x509.CertPool, protocol string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			inner := tls.Client(conn, &tls.Config{RootCAs: trusts, ServerName: name, NextProtos: []string{protocol}})
			return inner, inner.Handshake()
		},
	}}
}

func get(t *testing.T, c *http.Client, method, url, authorization string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	res, err := c.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	return string(text)
}

func TestACredentialIsPutBackWhereItBelongs(t *testing.T) {
	m := startMasked(t, policy.Config{SOCKS: true})
	ours, theirs := "Bearer "+m.placeholder, "Bearer "+secret
	for _, protocol := range []string{"http/1.1", "h2"} {
		proto := map[string]string{"http/1.1": "HTTP/2.0", "h2": "HTTP/2.0"}[protocol] // of the other side
		for _, conn := range []net.Conn{m.connect("api.example.com:443"), m.socksTo("api.example.com")} {
			c := over(conn, "api.example.com", m.trusted, protocol)
			for _, r := range []struct{ url, send, want string }{
				{"https://api.example.com/v1/x?a=;b", ours, proto + " POST /v1/x?a=;b " + theirs + " body"},
				{"https://api.example.com/v2", ours, proto + " POST /v2 " + ours + " body"},
				{"https://api.example.com/v1", "Bearer other", proto + " POST /v1 Bearer other body"},
				{"https://api.example.com/v1?" + m.placeholder, "", proto + " POST /v1?" + m.placeholder + "  body"},
			} {
				if got := get(t, c, "POST", r.url, r.send); got != r.want {
					t.Errorf("%s: %s, want %s", r.url, got, r.want)
				}
			}
			c.CloseIdleConnections()
		}
	}
	connect, socks := "domain allow baseline_policy allow https_connect api.example.com CONNECT", "domain allow baseline_policy allow socks5_tcp api.example.com"
	m.expect(connect, socks, connect, socks)
	// Another host is not looked into: it shows its own certificate.
	for _, conn := range []net.Conn{m.connect("www.example.com:443"), m.socksTo("www.example.com")} {
		c := over(conn, "www.example.com", m.origin, "http/1.1")
		if got := get(t, c, "GET", "https://www.example.com/v1", ours); got != "HTTP/1.1 GET /v1 "+ours+" body" {
			t.Errorf("another host: %s", got)
		}
		c.CloseIdleConnections()
	}
	// Nor is another port of the same one.
	c := over(m.connect("api.example.com:444"), "api.example.com", m.origin, "http/1.1")
	if got := get(t, c, "GET", "https://api.example.com:444/v1", ours); got != "HTTP/1.1 GET /v1 "+ours+" body" {
		t.Errorf("another port: %s", got)
	}
	c.CloseIdleConnections()
}

func TestATunnelStaysWithItsHost(t *testing.T) {
	m := startMasked(t, policy.Config{})
	for _, url := range []string{"https://www.example.com/v1", "https://api.example.com:444/v1"} {
		c := over(m.connect("api.example.com:443"), "api.example.com", m.trusted, "http/1.1")
		if got := get(t, c, "GET", url, "Bearer "+m.placeholder); got != "host mismatch" {
			t.Errorf("%s: %s", url, got)
		}
		c.CloseIdleConnections()
	}
	// One whose certificate is not trusted gets nothing.
	m.p.roots = x509.NewCertPool()
	c := over(m.connect("api.example.com:443"), "api.example.com", m.trusted, "http/1.1")
	if got := get(t, c, "GET", "https://api.example.com/v1", "Bearer "+m.placeholder); got != "upstream failure" {
		t.Errorf("an origin that is not trusted: %s", got)
	}
	c.CloseIdleConnections()
}

func TestATunnelOfSomethingElse(t *testing.T) {
	m := startMasked(t, policy.Config{})
	m.echo()
	conn := m.connect("api.example.com:443")
	if _, err := io.WriteString(conn, "SSH-2.0\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "SSH-2.0\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestAWebSocketWithACredential(t *testing.T) {
	m := startMasked(t, policy.Config{})
	conn := tls.Client(m.connect("api.example.com:443"), &tls.Config{RootCAs: m.trusted, ServerName: "api.example.com"})
	fmt.Fprintf(conn, "GET /v1 HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer %s\r\n\r\n", m.placeholder)
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	fmt.Fprint(conn, "hello\n")
	for _, want := range []string{"Bearer " + secret + "\n", "hello\n"} {
		if line, err := r.ReadString('\n'); line != want {
			t.Errorf("got %q, %v, want %q", line, err, want)
		}
	}
	_ = conn.Close()
}

// With a CA at hand the mode that only reads can see what is read.
func TestModeLimitedWithACredential(t *testing.T) {
	m := startMasked(t, policy.Config{Limited: true, SOCKS: true})
	for _, host := range []string{"api.example.com", "www.example.com"} {
		c := over(m.connect(host+":443"), host, m.trusted, "http/1.1")
		if got := get(t, c, "GET", "https://"+host+"/v1", ""); got != "HTTP/2.0 GET /v1  body" {
			t.Errorf("%s: %s", host, got)
		}
		if got := get(t, c, "POST", "https://"+host+"/v1", ""); got != "Method not allowed in limited mode." {
			t.Errorf("%s: %s", host, got)
		}
		c.CloseIdleConnections()
		m.expect("domain allow baseline_policy allow https_connect "+host+" CONNECT", "non_domain deny mode_guard method_not_allowed https_connect "+host+" POST")
	}
	conn := m.connect("api.example.com:443")
	if _, err := io.WriteString(conn, "SSH-2.0\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("something else than TLS goes through")
	}
}

func TestAPlainRequestHasNoCredential(t *testing.T) {
	m := startMasked(t, policy.Config{})
	m.serveOrigin(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) })
	head := "Host: api.example.com\r\nAuthorization: Bearer " + m.placeholder + "\r\n"
	if _, body := m.ask("GET", "http://api.example.com/v1", head, ""); body != "Bearer "+m.placeholder {
		t.Errorf("got %s", body)
	}
	if _, body := m.ask("GET", "http://api.example.com:443/v1", head, ""); body != "Bearer "+m.placeholder {
		t.Errorf("got %s", body)
	}
}
