package netproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

var allowPub = map[string]string{"pub.example": "allow"}

func TestAnAllowedRequestReachesTheOrigin(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub})
	got := make(chan *http.Request, 1)
	r.serveOrigin(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		got <- q
		w.Header().Set("X-A", "1")
		w.Header().Set("X-B", "2")
		w.Header().Set("Connection", "X-A")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header()["Content-Type"] = nil
		_, _ = fmt.Fprintf(w, "<html>%s %s", q.RequestURI, body)
	})
	res, body := r.ask("POST", "http://user:pass@pub.example:81/a?b=c;d", "Host: pub.example:81\r\nProxy-Connection: keep-alive\r\n"+
		"Proxy-Authorization: x\r\nConnection: keep-alive, X-Foo\r\nX-Foo: 1\r\nX-Bar: 2\r\nTE: trailers\r\nVia: 1.1 x\r\n"+
		"X-Forwarded-For: 9.9.9.9\r\nForwarded: for=1\r\nUpgrade: websocket\r\nContent-Length: 5\r\n", "hello")
	if res.StatusCode != 200 || body != "<html>/a?b=c;d hello" {
		t.Fatalf("got %s %q", res.Status, body)
	}
	if len(res.Header["X-A"])+len(res.Header["Proxy-Authenticate"])+len(res.Header["Content-Type"]) > 0 || res.Header.Get("X-B") != "2" {
		t.Errorf("the answer's header is %v", res.Header)
	}
	q := <-got
	if want := (http.Header{"X-Bar": {"2"}, "Via": {"1.1 x"}, "X-Forwarded-For": {"9.9.9.9"}, "Forwarded": {"for=1"}, "Content-Length": {"5"}}); fmt.Sprint(q.Header) != fmt.Sprint(want) || q.Host != "pub.example:81" {
		t.Errorf("host %s, header %v, want %v", q.Host, q.Header, want)
	}
	r.expect("domain allow baseline_policy allow http pub.example POST")
	if r.dialed[0] != "1.1.1.1:81" {
		t.Errorf("dialed %s", r.dialed)
	}
}

func TestBlockedRequests(t *testing.T) {
	for _, c := range []struct {
		config               policy.Config
		method, target       string
		header, body, decide string
	}{
		{
			policy.Config{}, "GET", "http://DENIED.example./", "blocked-by-allowlist",
			`{"status":"blocked","host":"denied.example","reason":"not_allowed","decision":"deny","source":"baseline_policy","protocol":"http","port":80,"message":"Domain not in allowlist."}`,
			"domain deny baseline_policy not_allowed http denied.example GET",
		},
		{
			policy.Config{Domains: map[string]string{"x.example": "deny"}}, "FROB", "http://x.example:8080/", "blocked-by-denylist",
			`{"status":"blocked","host":"x.example","reason":"denied","decision":"deny","source":"baseline_policy","protocol":"http","port":8080,"message":"Domain denied by the sandbox policy."}`,
			"domain deny baseline_policy denied http x.example FROB",
		},
		{
			policy.Config{Domains: map[string]string{"*": "allow"}}, "GET", "https://loc.example/", "blocked-by-allowlist",
			`{"status":"blocked","host":"loc.example","reason":"not_allowed_local","decision":"deny","source":"baseline_policy","protocol":"http","port":443,"message":"Sandbox policy blocks local/private network addresses."}`,
			"domain deny baseline_policy not_allowed_local http loc.example GET",
		},
		{
			policy.Config{Domains: map[string]string{"*": "allow"}}, "HEAD", "http://[::ffff:7f00:1]:8/", "blocked-by-allowlist", "",
			"domain deny baseline_policy not_allowed_local http ::ffff:127.0.0.1 HEAD",
		},
		{
			policy.Config{Domains: map[string]string{"*": "allow"}}, "GET", "http://mixed.example/", "blocked-by-allowlist", "*",
			"domain deny baseline_policy not_allowed_local http mixed.example GET",
		},
		{
			policy.Config{Domains: map[string]string{"*": "allow"}}, "GET", "http://unknown.example/", "blocked-by-allowlist", "*",
			"domain deny baseline_policy not_allowed_local http unknown.example GET",
		},
		{
			policy.Config{Domains: allowPub, Limited: true}, "POST", "http://pub.example/", "blocked-by-method-policy",
			`{"status":"blocked","host":"pub.example","reason":"method_not_allowed","decision":"deny","source":"mode_guard","protocol":"http","port":80,"message":"Method not allowed in limited mode."}`,
			"domain allow baseline_policy allow http pub.example POST\nnon_domain deny mode_guard method_not_allowed http pub.example POST",
		},
	} {
		r := start(t, c.config)
		host, _, _ := strings.Cut(strings.SplitN(c.target, "/", 3)[2], "/")
		res, body := r.ask(c.method, c.target, "Host: "+host+"\r\n", "")
		if res.StatusCode != 403 || res.Header.Get("X-Proxy-Error") != c.header || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %s %v", c.method, c.target, res.Status, res.Header)
		}
		if c.body != "*" && body != c.body {
			t.Errorf("%s %s:\n got %s\nwant %s", c.method, c.target, body, c.body)
		}
		r.expect(strings.Split(c.decide, "\n")...)
		if len(r.dialed) > 0 {
			t.Errorf("%s %s: dialed %s", c.method, c.target, r.dialed)
		}
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	r := start(t, policy.Config{Domains: map[string]string{"*": "allow"}, LocalOK: true})
	for _, c := range []struct {
		method, target, head string
		status               int
		body                 string
	}{
		{"GET", "http://x:99999/", "Host: x\r\n", 400, "invalid Host header"},
		{"GET", "/", "Host: a..b\r\n", 400, "invalid Host header"},
		{"GET", "/", "Host: \r\n", 400, "missing host"},
		{"GET", "http://pub.example:1/", "Host: x\r\n", 502, "upstream failure"},
		{"GET", "/x", "Host: localhost\r\nX-Unix-Socket: /run/x\r\n", 501, "unix sockets unsupported"},
	} {
		r.origin = "127.0.0.1:1"
		res, body := r.ask(c.method, c.target, c.head, "")
		if res.StatusCode != c.status || body != c.body || res.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%+v: %s %q %v", c, res.Status, body, res.Header)
		}
	}
	r.expect("domain allow baseline_policy allow http pub.example GET",
		"non_domain deny proxy_state unix_socket_unsupported http unix-socket GET")
}

// Two lengths in one message are how a request is hidden in another.
func TestSmuggling(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub})
	var seen []string
	r.serveOrigin(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		seen = append(seen, q.Method+" "+string(body))
	})
	c := r.dial(r.web)
	c.send("POST http://pub.example/ HTTP/1.1\r\nHost: pub.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"5\r\nhello\r\n0\r\n\r\nGET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n")
	if res, _ := c.answer("POST"); res.StatusCode == 200 && fmt.Sprint(seen) != "[POST hello]" {
		t.Errorf("the origin saw %q", seen)
	}
	res, _ := r.ask("POST", "http://pub.example/", "Host: pub.example\r\nContent-Length: 4\r\nContent-Length: 5\r\n", "hello")
	if res.StatusCode != 400 {
		t.Errorf("two lengths: %s", res.Status)
	}
}

func TestRequestsOnOneConnection(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub})
	r.serveOrigin(func(w http.ResponseWriter, q *http.Request) { _, _ = io.WriteString(w, q.RequestURI) })
	c := r.dial(r.web)
	for i := range 3 {
		c.send(fmt.Sprintf("GET http://pub.example/%d HTTP/1.1\r\nHost: pub.example\r\n\r\n", i))
		if res, body := c.answer("GET"); res.StatusCode != 200 || body != fmt.Sprint("/", i) {
			t.Errorf("%s %s", res.Status, body)
		}
		c.send("POST http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\nContent-Length: 2\r\n\r\nhi")
		if res, _ := c.answer("POST"); res.StatusCode != 403 {
			t.Errorf("%s", res.Status)
		}
	}
	c.send("OPTIONS * HTTP/1.1\r\nHost: pub.example\r\n\r\n")
	if res, body := c.answer("OPTIONS"); res.StatusCode != 200 || body != "*" && body != "" {
		t.Errorf("%s %s", res.Status, body)
	}
}

// Bodies go through as they come.
func TestBodiesAreStreamed(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub})
	next := make(chan struct{})
	r.serveOrigin(func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		b := make([]byte, 1)
		for {
			if _, err := io.ReadFull(q.Body, b); err != nil {
				return
			}
			_, _ = w.Write(b)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	c := r.dial(r.web)
	c.send("POST http://pub.example/ HTTP/1.1\r\nHost: pub.example\r\nContent-Length: 2\r\n\r\na")
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b := make([]byte, 1)
	if _, err := io.ReadFull(res.Body, b); err != nil || b[0] != 'a' {
		t.Fatalf("%q %v", b, err)
	}
	c.send("b")
	close(next)
	if _, err := io.ReadFull(res.Body, b); err != nil || b[0] != 'b' {
		t.Fatalf("%q %v", b, err)
	}
}

func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		host   string
		answer policy.Answer
		status int
		want   string
		asked  int
	}{
		{"pub.example", policy.Answer{Verdict: "allow"}, 200, "domain allow decider not_allowed http pub.example GET override", 1},
		{"loc.example", policy.Answer{Verdict: "allow"}, 403, "domain deny baseline_policy not_allowed_local http loc.example GET", 1},
		{"pub.example", policy.Answer{Verdict: "ask", Reason: "why"}, 403, "domain ask decider why http pub.example GET", 1},
		{"pub.example", policy.Answer{Verdict: "deny", Reason: "because"}, 403, "domain deny decider because http pub.example GET", 1},
		{"pub.example", policy.NoAnswer, 403, "domain deny decider not_allowed http pub.example GET", 1},
		{"127.0.0.1", policy.Answer{Verdict: "allow"}, 403, "domain deny baseline_policy not_allowed_local http 127.0.0.1 GET", 0},
		{"localhost", policy.Answer{Verdict: "allow"}, 403, "domain deny baseline_policy not_allowed_local http localhost GET", 0},
		{"x.example", policy.Answer{Verdict: "allow"}, 403, "domain deny baseline_policy denied http x.example GET", 0},
	} {
		r := start(t, policy.Config{Ask: true, Domains: map[string]string{"x.example": "deny", "pub.example": "none"}})
		r.serveOrigin(func(http.ResponseWriter, *http.Request) {})
		r.answer = c.answer
		res, _ := r.ask("GET", "http://"+c.host+"/", "Host: "+c.host+"\r\n", "")
		if res.StatusCode != c.status || len(r.asked) != c.asked {
			t.Errorf("%s, %v: %s, asked %v", c.host, c.answer, res.Status, r.asked)
		}
		r.expect(c.want)
	}
}

// What is connected to is what was decided about, whatever the name says next.
func TestNamesAreLookedUpOnce(t *testing.T) {
	r := start(t, policy.Config{Domains: allowPub, SOCKS: true})
	r.serveOrigin(func(http.ResponseWriter, *http.Request) {})
	inner := r.p.resolve
	lookups := 0
	r.p.resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		if lookups++; lookups > 1 {
			name = "loc.example"
		}
		return inner(ctx, name)
	}
	if res, _ := r.ask("GET", "http://pub.example/", "Host: pub.example\r\n", ""); res.StatusCode != 200 {
		t.Errorf("first: %s", res.Status)
	}
	// The connection to the first address is open still, and is not used.
	if res, _ := r.ask("GET", "http://pub.example/", "Host: pub.example\r\n", ""); res.StatusCode != 403 {
		t.Errorf("rebound: %s", res.Status)
	}
	if fmt.Sprint(r.dialed) != "[1.1.1.1:80]" {
		t.Errorf("dialed %v", r.dialed)
	}
}

func TestAnotherProxyUpstream(t *testing.T) {
	var seen []string
	r := start(t, policy.Config{Domains: allowPub, HTTPProxy: "http://u:p@9.9.9.9:3128", HTTPSProxy: "http://9.9.9.9:3128"})
	r.serveOrigin(func(w http.ResponseWriter, q *http.Request) {
		seen = append(seen, q.Method+" "+q.RequestURI+" "+q.Header.Get("Proxy-Authorization"))
		if q.Method == "CONNECT" {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nfirst")
			_ = conn.Close()
		}
	})
	if res, _ := r.ask("GET", "http://pub.example/a", "Host: pub.example\r\n", ""); res.StatusCode != 200 {
		t.Errorf("%s", res.Status)
	}
	c := r.dial(r.web)
	c.send("CONNECT pub.example:443 HTTP/1.1\r\nHost: pub.example:443\r\n\r\n")
	rest, _ := io.ReadAll(c)
	if !strings.HasPrefix(string(rest), "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(string(rest), "\r\n\r\nfirst") {
		t.Errorf("%q", rest)
	}
	if fmt.Sprint(seen) != "[GET http://pub.example/a Basic dTpw CONNECT pub.example:443 ]" || fmt.Sprint(r.dialed) != "[9.9.9.9:3128 9.9.9.9:3128]" {
		t.Errorf("saw %q, dialed %v", seen, r.dialed)
	}
}
