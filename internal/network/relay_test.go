package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/ca"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// site serves HTTP at an address, and says who was asked for.
func (r *rig) site(to string) {
	h := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		_, _ = io.WriteString(w, q.Host+q.URL.Path)
	})
	r.serveAt(to, func(c *net.TCPConn) {
		l := &once{c: c, ended: make(chan struct{})}
		s := http.Server{Handler: h, ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(l.ended)
			}
		}}
		_ = s.Serve(l)
	})
}

// once is a listener with one connection.
type once struct {
	c     net.Conn
	ended chan struct{}
	given bool
}

func (l *once) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.c, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}
func (l *once) Close() error   { return nil }
func (l *once) Addr() net.Addr { return l.c.LocalAddr() }

// request asks on a connection, and returns the status and the body.
func request(t *testing.T, c net.Conn, in *bufio.Reader, host, path string) (int, string) {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// Each request of a connection is decided for itself, and by the policy as it is then.
func TestRequestsOfAConnection(t *testing.T) {
	r := newRig(t, named, "one.test", "93.184.216.34", "two.test", "93.184.216.34", "a.more.test", "93.184.216.34")
	r.site("93.184.216.34:80")
	c := r.must("93.184.216.34:80")
	in := bufio.NewReader(c)
	for _, host := range []string{"one.test", "a.more.test", "one.test"} {
		if status, got := request(t, c, in, host, "/x"); status != 200 || got != host+"/x" {
			t.Errorf("%s: %d %q", host, status, got)
		}
	}
	if s := r.Stats(); s.Names["one.test"].Allowed != 2 || s.Names["one.test"].In == 0 || s.Names["a.more.test"].Allowed != 1 || s.Total.Denied != 0 {
		t.Errorf("%+v", s)
	}
	if err := r.Set(rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: []string{"one.test"}}}}, false); err != nil {
		t.Fatal(err)
	}
	if status, _ := request(t, c, in, "one.test", "/y"); status != 200 {
		t.Errorf("what is allowed still: %d", status)
	}
	if status, got := request(t, c, in, "a.more.test", "/y"); status == 200 {
		t.Errorf("what is no longer allowed: %q", got)
	}
	if d := r.Stats().Denials[0]; d.What != "http 93.184.216.34:80 a.more.test" || d.Reason != rules.ByMode {
		t.Errorf("%+v", d)
	}
}

// Every byte counts for a name, in both directions: a request is read before it is
// decided about.
func TestBytesOfRequests(t *testing.T) {
	r := newRig(t, named, "one.test", "93.184.216.34", "two.test", "93.184.216.34")
	r.site("93.184.216.34:80")
	sent := map[string]int{}
	for _, host := range []string{"one.test", "one.test", "two.test"} {
		text := "POST / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 1000)
		got, err := say(t, r.must("93.184.216.34:80"), text)
		if err != nil {
			t.Error(err)
		}
		sent[host] += len(text)
		sent[host+", in"] += len(got)
	}
	s := r.Stats()
	for _, host := range []string{"one.test", "two.test"} {
		if c := s.Names[host]; int(c.Out) != sent[host] || int(c.In) != sent[host+", in"] {
			t.Errorf("%s: %+v, want %v", host, c, sent)
		}
	}
	if s.Used != int64(s.Total.In+s.Total.Out) {
		t.Errorf("%+v", s)
	}
}

// A credential that cannot be read denies its requests, so that somebody sees it, until
// it can be.
func TestACredentialThatIsMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	r := newRig(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{
		{Deny: []string{"two.test"}},
		{Allow: []string{"one.test"}, Protocols: []rules.Protocol{rules.HTTP}, Credential: &rules.Credential{SecretFile: file}},
	}}, "one.test", "93.184.216.34")
	r.site("93.184.216.34:80")
	c := r.must("93.184.216.34:80")
	in := bufio.NewReader(c)
	if status, got := request(t, c, in, "one.test", "/"); status != 502 || strings.Contains(got, file) {
		t.Errorf("%d %q", status, got)
	}
	s := r.Stats()
	if len(s.Denials) != 1 || s.Denials[0].What != "http 93.184.216.34:80 one.test" || s.Denials[0].Reason != rules.NoSecret || s.Denials[0].Rule != 1 {
		t.Errorf("%+v", s.Denials)
	}
	if s.Total.Allowed != 0 || s.Denied[rules.NoSecret] != 1 {
		t.Errorf("%+v", s)
	}
	if got := r.log.String(); !strings.Contains(got, `"level":"warn"`) || !strings.Contains(got, file) {
		t.Error(got)
	}
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, got := request(t, c, in, "one.test", "/"); status != 200 {
		t.Errorf("%d %q", status, got)
	}
	if s := r.Stats(); s.Total.Allowed != 1 || s.Total.Denied != 1 || strings.Contains(r.log.String(), "hunter2") {
		t.Errorf("%+v, %s", s, r.log)
	}
}

// That a host's certificate is not believed is in the log.
func TestACertificateThatIsNotBelieved(t *testing.T) {
	r := web(t, named, "one.test")
	text, err := ca.New("a CA of one's own", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	public, err := ca.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r.serveAt("93.184.216.34:443", func(c *net.TCPConn) {
		defer c.Close()
		_ = tls.Server(c, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return public.Leaf("one.test", time.Now())
		}}).HandshakeContext(context.Background())
	})
	r.opts.Dir, r.roots = t.TempDir(), x509.NewCertPool()
	t.Setenv("ONE_KEY", "hunter2")
	if err := r.Set(rules.Policy{Mode: rules.Rules, Intercept: true, Rules: []rules.Rule{
		{Allow: []string{"one.test"}, Credential: &rules.Credential{SecretEnv: "ONE_KEY"}},
	}}, false); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(r.must("93.184.216.34:443"), &tls.Config{ServerName: "one.test", InsecureSkipVerify: true})
	if status, got := request(t, c, bufio.NewReader(c), "one.test", "/"); status != 502 || !strings.Contains(got, "certificate of one.test:443 is not valid") {
		t.Errorf("%d %q", status, got)
	}
	want := `{"level":"warn","name":"one.test:443","error":"x509: certificate signed by unknown authority","message":"network: the host's certificate is not valid"}`
	if got := r.log.String(); !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}

func TestARequestForAnotherName(t *testing.T) {
	for host, reason := range map[string]rules.Reason{
		"two.test": rules.ByMode, "a.more.test": rules.WrongName, "93.184.216.34": rules.NoName,
	} {
		r := newRig(t, named, "one.test", "93.184.216.34", "two.test", "93.184.216.34")
		r.site("93.184.216.34:80")
		c := r.must("93.184.216.34:80")
		if got, err := say(t, c, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil || !strings.HasPrefix(got, "HTTP/1.1 403 ") {
			t.Errorf("%s: %q, %v", host, got, err)
		}
		if d := r.Stats().Denials; len(d) != 1 || d[0].Reason != reason {
			t.Errorf("%s: %+v", host, d)
		}
	}
}

// What a request begins counts as what a program begins does.
func TestConnectionsPerSecondOfARelay(t *testing.T) {
	r := newRig(t, rules.Policy{Mode: rules.Open, Limits: rules.Limits{ConnectionsPerSecond: 1}})
	if !r.budget.fresh() {
		t.Error("not even one")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := r.again(ctx, &connection{}); err == nil || len(r.dials()) != 0 || r.budget.connections() != 0 {
		t.Errorf("%v, %v", err, r.dials())
	}
}

// What passes through a relay counts and is bounded as anything else.
func TestMetered(t *testing.T) {
	client, program := pair(t)
	full, count := 0, &counter{}
	m := &metered{Conn: client, meter: meter{budget: newBudget(rules.Limits{Bytes: 10}, 0)}, ctx: context.Background(), full: func() { full++ }}
	m.count.Store(count)
	_, _ = program.Write([]byte("abc"))
	if n, err := m.Read(make([]byte, 10)); n != 3 || err != nil {
		t.Error(n, err)
	}
	if n, err := m.Write([]byte("defgh")); n != 5 || err != nil {
		t.Error(n, err)
	}
	if n, err := m.Write([]byte("ijklm")); n != 2 || !errors.Is(err, errVolume) {
		t.Error(n, err)
	}
	if n, err := m.Write([]byte("n")); n != 0 || !errors.Is(err, errVolume) || full != 1 {
		t.Error(n, err, full)
	}
	if err := m.CloseWrite(); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(program); err != nil || string(got) != "defghij" {
		t.Errorf("%q, %v", got, err)
	}
	if c := count.read(); c.In != 7 || c.Out != 3 {
		t.Errorf("%+v", c)
	}
}
