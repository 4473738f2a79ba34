package broker

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
)

// world is a broker between a client and a host, over real sockets.
type world struct {
	t       *testing.T
	o       Options
	host    *httptest.Server
	tls     bool // the client begins with TLS
	mu      sync.Mutex
	dialed  []string // guarded by mu, as are those below
	checked []string
	failed  []string
	decided []string
}

// start makes a world in which all names are allowed but those of denied.test, and
// where all are the handler's. cred.test has a credential.
func start(t *testing.T, h http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, host: httptest.NewUnstartedServer(h)}
	w.host.Config.DisableGeneralOptionsHandler = true
	w.host.Start()
	t.Cleanup(w.host.Close)
	w.options("127.0.0.1:80")
	return w
}

func (w *world) options(to string) {
	w.o = Options{
		To: netip.MustParseAddrPort(to),
		Check: func(host string, port uint16, app rules.Protocol) rules.Decision {
			w.note(&w.checked, "%s %d %s", host, port, app)
			switch host {
			case "denied.test":
				return rules.Decision{Reason: rules.ByRule, Rule: 2}
			case "asked.test":
				return rules.Decision{Verdict: rules.AskName, Reason: rules.ByRule}
			case "cred.test":
				return rules.Decision{Verdict: rules.Allow, Rule: 4, Credential: &rules.Credential{Placeholder: "PLACEHOLDER"}}
			}
			return rules.Decision{Verdict: rules.Allow, Rule: -1}
		},
		Dial: func(ctx context.Context, host string, port uint16) (net.Conn, error) {
			w.note(&w.dialed, "%s %d", host, port)
			if host == "down.test" {
				return nil, errors.New("nobody is there")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", w.host.Listener.Addr().String())
		},
		Secret: func(context.Context, *rules.Credential) (secret.Secret, error) { return secret.New("hunter2"), nil },
		Failed: func(host string, err error) { w.note(&w.failed, "%s: %v", host, err) },
		Decided: func(host string, app rules.Protocol, d rules.Decision, err error) {
			w.note(&w.decided, "%s %s %d %s %d %v", host, app, d.Verdict, d.Reason, d.Rule, err)
		},
	}
}

func (w *world) note(to *[]string, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*to = append(*to, fmt.Sprintf(format, args...))
}

// seen is what was noted.
func (w *world) seen(of *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(*of)
}

// connect is a connection that is served. The test waits for the end of that.
func (w *world) connect() net.Conn {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	serve := Serve
	if w.tls {
		serve = ServeTLS
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		serve(context.Background(), server, w.o)
	}()
	w.t.Cleanup(func() {
		_ = c.Close()
		<-over
	})
	return c
}

// client is an http.Client all of whose connections are served.
func (w *world) client(config *tls.Config) *http.Client {
	tr := &http.Transport{
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return w.connect(), nil },
		TLSClientConfig: config.Clone(), ForceAttemptHTTP2: config != nil && len(config.NextProtos) == 0,
	}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// exchange sends bytes and reads the answers to so many requests of the method.
func (w *world) exchange(c net.Conn, method, text string, n int) []*answer {
	w.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	r := bufio.NewReader(c)
	var all []*answer
	for range n {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			w.t.Fatalf("%q, answer %d: %v", text, len(all), err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			w.t.Fatalf("%q, answer %d: %v", text, len(all), err)
		}
		all = append(all, &answer{res, string(body)})
	}
	return all
}

type answer struct {
	*http.Response
	body string
}

// get sends one request.
func (w *world) get(c *http.Client, r *http.Request) *answer {
	w.t.Helper()
	res, err := c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return &answer{res, string(body)}
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// echo tells what has arrived.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %s %s auth=%q body=%s", r.Method, r.Host, r.RequestURI, r.Header.Values("Authorization"), body)
}

// overTLS makes the client's side and the host's speak TLS, for name.
func overTLS(t *testing.T, h http.HandlerFunc, name string) (*world, *tls.Config) {
	t.Helper()
	w, config, _ := overTLSBy(t, h, name)
	return w, config
}

// overTLSBy also returns who has signed for the host.
func overTLSBy(t *testing.T, h http.HandlerFunc, name string) (*world, *tls.Config, *Authority) {
	t.Helper()
	w := &world{t: t, tls: true, host: httptest.NewUnstartedServer(h)}
	public := authority(t)
	w.host.TLS = public.config(name)
	w.host.EnableHTTP2 = true
	w.host.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.host.StartTLS()
	t.Cleanup(w.host.Close)
	w.options("127.0.0.1:443")
	w.o.Name, w.o.Authority, w.o.RootCAs = name, authority(t), pool509(t, public)
	return w, &tls.Config{RootCAs: pool509(t, w.o.Authority)}, public
}

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.TempDir(), "env")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pool509(t *testing.T, a *Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("the certificate is none")
	}
	return p
}

// listen has a port at which one connection after the other is served.
func (w *world) listen() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ServeTLS(context.Background(), c, w.o)
		}
	}()
	w.t.Cleanup(func() {
		_ = l.Close()
		<-over
	})
	return l.Addr().String()
}
