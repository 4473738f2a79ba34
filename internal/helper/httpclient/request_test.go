package httpclient

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

const defaults = "accept: */*\naccept-encoding: zstd,gzip\n"

// All of this is what an origin saw of the reference executor.
func TestRequestsOnTheWire(t *testing.T) {
	o := newOrigin(t, nil)
	c := client(nil)
	body := func(r *Request, method, body string) *Request {
		r.Method, r.Body = method, []byte(body)
		return r
	}
	at := o.listener.Addr().String()
	for _, test := range []struct {
		what string
		r    *Request
		want string
	}{
		{"query, fragment", get(o.url("/a?b#c")), "GET /a?b HTTP/1.1\n" + defaults + "host: ORIGIN\n\n"},
		{"no path", get("http://" + at), "GET / HTTP/1.1\n" + defaults + "host: ORIGIN\n\n"},
		{"spelling of the URL", get(" HTTP:\\\\" + at + "/x/./%2e%2e/ä b?'\"<>|^`{}"), "GET /%C3%A4%20b?%27%22%3C%3E|^`{} HTTP/1.1\n" + defaults + "host: ORIGIN\n\n"},
		{"empty query, broken escape", get(o.url("/x%zz?")), "GET /x%zz? HTTP/1.1\n" + defaults + "host: ORIGIN\n\n"},
		{"repeated headers come together", body(get(o.url("/p"), "X-One", "1", "Zed", "z", "x-oNe", "2"), "POST", "hi"), "POST /p HTTP/1.1\nx-one: 1\nx-one: 2\nzed: z\n" + defaults + "host: ORIGIN\ncontent-length: 2\n\nhi"},
		{"own method", body(get(o.url("/p")), "get", "hi"), "get /p HTTP/1.1\n" + defaults + "host: ORIGIN\ncontent-length: 2\n\nhi"},
		{"POST without a body", body(get(o.url("/p")), "POST", ""), "POST /p HTTP/1.1\n" + defaults + "host: ORIGIN\n\n"},
		{"own defaults", get(o.url("/p"), "Accept", "a", "Accept-Encoding", "br", "Host", "ex.org", "User-Agent", "u"), "GET /p HTTP/1.1\naccept: a\naccept-encoding: br\nhost: ex.org\nuser-agent: u\n\n"},
		{"user info", get("http://us%20er:p%40ss@" + at + "/p"), "GET /p HTTP/1.1\nauthorization: Basic dXMgZXI6cEBzcw==\n" + defaults + "host: ORIGIN\n\n"},
		{"user info and a header", get("http://user@"+at+"/p", "X", "1", "authorization", "mine"), "GET /p HTTP/1.1\nauthorization: mine\nx: 1\n" + defaults + "host: ORIGIN\n\n"},
		{"own length", body(get(o.url("/p"), "Content-Length", "1"), "POST", "hi"), "POST /p HTTP/1.1\ncontent-length: 1\n" + defaults + "host: ORIGIN\n\nh"},
		{"chunked", body(get(o.url("/p"), "Transfer-Encoding", "chunked"), "POST", "hi"), "POST /p HTTP/1.1\ntransfer-encoding: chunked\n" + defaults + "host: ORIGIN\n\n2\nhi\n0\n\n"},
		{"value as it is", get(o.url("/p"), "X-A", " ä\t€ ", "B", ""), "GET /p HTTP/1.1\nx-a:  ä\t€ \nb: \n" + defaults + "host: ORIGIN\n\n"},
	} {
		if got := do(t, c, test.r); got.status != 200 || got.body != "ok" {
			t.Errorf("%s: %+v", test.what, got)
		}
		o.wire(test.what, test.want)
	}
}

func TestWhatIsRefusedUnsent(t *testing.T) {
	t.Setenv("FILLED", "full")
	t.Setenv("EMPTY", "")
	t.Setenv("OPENAI_API_KEY", "k")
	t.Setenv("BROKEN", "a\nb")
	fromEnv := func(name string) []Header { return []Header{{Name: "X-E", Value: "v", EnvVar: name, FromEnv: true}} }
	for _, test := range []struct {
		r    Request
		want string
	}{
		{Request{Method: "G T", URL: "x"}, "method is invalid: invalid HTTP method"},
		{Request{Method: "", URL: "x"}, "method is invalid: invalid HTTP method"},
		{Request{Method: "GET", URL: "x"}, "url is invalid: relative URL without a base"},
		{Request{Method: "GET", URL: "//x/y"}, "url is invalid: relative URL without a base"},
		{Request{Method: "GET", URL: "http://"}, "url is invalid: empty host"},
		{Request{Method: "GET", URL: "http://u:p@/x"}, "url is invalid: empty host"},
		{Request{Method: "GET", URL: "http://a:99999/"}, "url is invalid: invalid port number"},
		{Request{Method: "GET", URL: "http://[::1/"}, "url is invalid: invalid IPv6 address"},
		{Request{Method: "GET", URL: "http://256.1.1.1/"}, "url is invalid: invalid IPv4 address"},
		{Request{Method: "GET", URL: "http://a b/"}, "url is invalid: invalid international domain name"},
		{Request{Method: "GET", URL: "ftp://x/y"}, "only supports http and https URLs, got ftp"},
		{Request{Method: "GET", URL: "file:///etc/passwd"}, "only supports http and https URLs, got file"},
		{Request{Method: "GET", URL: "http://x", Headers: []Header{{Name: "a b"}}}, "header name is invalid: invalid HTTP header name"},
		{Request{Method: "GET", URL: "http://x", Headers: []Header{{Name: "X-A", Value: "a\r\nb: c"}}}, "header value is invalid for X-A: failed to parse header value"},
		{Request{Method: "GET", URL: "http://x", Headers: fromEnv("NO_SUCH")}, "header X-E requires executor environment variable NO_SUCH"},
		{Request{Method: "GET", URL: "http://x", Headers: fromEnv("EMPTY")}, "header X-E requires a non-empty executor environment variable EMPTY"},
		{Request{Method: "GET", URL: "http://x", Headers: fromEnv("OPENAI_API_KEY")}, "header X-E cannot use executor environment variable OPENAI_API_KEY"},
		{Request{Method: "GET", URL: "http://x", Headers: fromEnv("codex_api_key")}, "header X-E cannot use executor environment variable codex_api_key"},
		{Request{Method: "GET", URL: "http://x", Headers: fromEnv("CODEX_ACCESS_TOKEN")}, "header X-E cannot use executor environment variable CODEX_ACCESS_TOKEN"},
		{Request{Method: "GET", URL: "http://x", Headers: fromEnv("BROKEN")}, "header value is invalid for X-E: failed to parse header value"},
	} {
		got := do(t, client(nil), &test.r).err
		if want := "-32602 http/request " + test.want; got != want {
			t.Errorf("%q %q: got %s, want %s", test.r.Method, test.r.URL, got, want)
		}
	}
	o := newOrigin(t, nil)
	do(t, client(nil), &Request{Method: "GET", URL: o.url("/"), Headers: fromEnv("FILLED")})
	o.wire("from the environment", "GET / HTTP/1.1\nx-e: vfull\n"+defaults+"host: ORIGIN\n\n")
}

// redirecting answers /CODE/TARGET with a redirect to TARGET, and all else with
// ok.
func redirecting(path string, c net.Conn) {
	if code, location, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/"); ok && len(code) == 3 && code[0] == '3' {
		if !strings.Contains(location, ":") {
			location = "/" + location
		}
		fmt.Fprintf(c, "HTTP/1.1 %s X\r\nLocation: %s\r\nContent-Length: 3\r\n\r\nxyz", code, location)
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

func TestRedirects(t *testing.T) {
	o := newOrigin(t, redirecting)
	other := newOrigin(t, nil)
	c := client(nil)
	all := []string{"Authorization", "A", "Cookie", "c", "X-K", "k", "Content-Type", "t", "Proxy-Authorization", "pa", "Cookie2", "c2", "WWW-Authenticate", "w", "Host", "hh", "Zz", "z"}
	send := func(method, path string, body string, headers ...string) outcome {
		r := get(o.url(path), headers...)
		r.Method, r.Body = method, []byte(body)
		return do(t, c, r)
	}
	end := "referer: http://ORIGIN%s\nhost: ORIGIN\n"
	for _, test := range []struct{ method, code, body, want string }{
		{"POST", "301", "hi", "GET"}, {"POST", "302", "hi", "GET"}, {"PUT", "302", "hi", "PUT"}, {"PUT", "303", "hi", "GET"},
		{"HEAD", "303", "", "HEAD"}, {"POST", "307", "hi", "POST"}, {"DELETE", "308", "", "DELETE"},
	} {
		path := "/" + test.code + "/t"
		if got := send(test.method, path, test.body); got.status != 200 {
			t.Errorf("%s %s: %+v", test.method, path, got)
		}
		requests := o.seen()
		want := test.want + " /t HTTP/1.1\n" + defaults + fmt.Sprintf(end, path)
		if test.body != "" && test.want != "GET" {
			want += "content-length: 2\n\nhi"
		} else {
			want += "\n"
		}
		if got := requests[len(requests)-1]; got != strings.ReplaceAll(want, "\n", "\r\n") {
			t.Errorf("%s %s is followed by %q, not %q", test.method, test.code, got, want)
		}
	}
	send("POST", "/302/"+other.url("/t#f"), "hi", all...)
	o.seen()
	want := strings.ReplaceAll("GET /t HTTP/1.1\naccept: */*\nzz: z\nx-k: k\naccept-encoding: zstd,gzip\nhost: hh\nreferer: http://FIRST/302/http://ORIGIN/t\n\n",
		"FIRST", o.listener.Addr().String())
	other.wire("to another host, in the reference's order", want)

	for path, want := range map[string]int{"/300/t": 300, "/304/t": 304, "/302/http://[::1": 302} {
		if got := send("GET", path, ""); got.status != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	stop := get(o.url("/302/t"))
	stop.Follow = false
	if got := do(t, c, stop); got.status != 302 || got.headers != "location: /t; content-length: 3; " || got.body != "xyz" {
		t.Errorf("not followed: %+v", got)
	}
	for path, want := range map[string]string{
		strings.Repeat("/302", 11) + "/t": "-32603 http/request failed: too many redirects",
		"/302/ftp://x/y":                  "-32603 http/request failed: redirect target uses unsupported URL scheme: ftp",
	} {
		if got := send("GET", path, ""); got.err != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := send("GET", strings.Repeat("/302", 10)+"/t", ""); got.status != 200 {
		t.Errorf("ten redirects: %+v", got)
	}
}

func TestProxies(t *testing.T) {
	proxy := newOrigin(t, func(path string, c net.Conn) {
		if strings.HasSuffix(path, ":443") {
			_, _ = io.WriteString(c, "HTTP/1.1 403 No\r\n\r\n")
			_ = c.Close()
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	o := newOrigin(t, redirecting)
	at := proxy.listener.Addr().String()
	for _, test := range []struct {
		what string
		env  map[string]string
		url  string
		want string // of the proxy; "" is nothing
	}{
		{"http", map[string]string{"HTTP_PROXY": "http://" + at}, "http://a.invalid/x?y", "GET http://a.invalid/x?y HTTP/1.1\n" + defaults + "host: a.invalid\n\n"},
		{"lower case, no scheme, port", map[string]string{"http_proxy": at}, "http://a.invalid:81/", "GET http://a.invalid:81/ HTTP/1.1\n" + defaults + "host: a.invalid:81\n\n"},
		{"credentials", map[string]string{"HTTP_PROXY": "http://us:pw@" + at}, "http://u:p@a.invalid/#z", "GET http://a.invalid/ HTTP/1.1\nauthorization: Basic dTpw\naccept: */*\nproxy-authorization: Basic dXM6cHc=\naccept-encoding: zstd,gzip\nhost: a.invalid\n\n"},
		{"for all", map[string]string{"ALL_PROXY": at}, "http://a.invalid/", "GET http://a.invalid/ HTTP/1.1\n" + defaults + "host: a.invalid\n\n"},
		{"tunnel", map[string]string{"HTTPS_PROXY": "us:pw@" + at}, "https://a.invalid/", "CONNECT a.invalid:443 HTTP/1.1\nHost: a.invalid:443\nProxy-Authorization: Basic dXM6cHc=\n\n"},
		{"address excepted", map[string]string{"HTTP_PROXY": at, "NO_PROXY": "x, 127.0.0.1"}, o.url("/"), ""},
		{"network excepted", map[string]string{"HTTP_PROXY": at, "no_proxy": "127.0.0.0/8"}, o.url("/"), ""},
		{"CGI", map[string]string{"HTTP_PROXY": at, "REQUEST_METHOD": "GET"}, o.url("/"), ""},
		{"nonsense", map[string]string{"HTTP_PROXY": "::bad::"}, o.url("/"), ""},
		{"other scheme", map[string]string{"HTTPS_PROXY": at}, o.url("/"), ""},
	} {
		do(t, client(test.env), get(test.url))
		if test.want == "" {
			proxy.wire(test.what)
		} else {
			proxy.wire(test.what, test.want)
		}
	}
	p := proxiesOf(func(name string) string {
		return map[string]string{"HTTP_PROXY": at, "NO_PROXY": ".sub.example,exact.org"}[name]
	})
	for host, want := range map[string]bool{"a.sub.example": true, "sub.example": true, "asub.example": false, "exact.org": true, "x.exact.org": true, "10.0.0.1": false} {
		if got := p.excepted(host); got != want {
			t.Errorf("%s is excepted: %v", host, got)
		}
	}

	// A redirect past the proxy does not take the proxy's credentials along.
	leaky := newOrigin(t, func(_ string, c net.Conn) {
		fmt.Fprintf(c, "HTTP/1.1 302 X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", o.url("/t"))
	})
	do(t, client(map[string]string{"HTTP_PROXY": "http://us:pw@" + leaky.listener.Addr().String(), "NO_PROXY": "127.0.0.1"}), get("http://a.invalid/"))
	for _, r := range append(o.seen(), leaky.seen()[1:]...) {
		if strings.Contains(r, "proxy-authorization") {
			t.Errorf("an origin sees %q", r)
		}
	}
}
