package broker

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestEveryRequestIsChecked has several on one connection, the last ones at once.
func TestEveryRequestIsChecked(t *testing.T) {
	w := start(t, echo)
	c := w.connect()
	var got []string
	for _, text := range []string{
		"GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET /2 HTTP/1.1\r\nHost: denied.test\r\n\r\n",
		"POST /3 HTTP/1.1\r\nHost: B.test.:80\r\nContent-Length: 2\r\n\r\nhi",
		"GET /4 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /5 HTTP/1.1\r\nHost: denied.test\r\n\r\nGET http://a.test/6 HTTP/1.1\r\nHost: other.test\r\n\r\n",
	} {
		for _, a := range w.exchange(c, "GET", text, strings.Count(text, "HTTP/1.1")) {
			got = append(got, fmt.Sprint(a.StatusCode, " ", a.body))
		}
	}
	const denied = "403 exec-server: the network policy of this sandbox does not allow denied.test:80 (rule 3 denies it)\n"
	want := []string{
		"200 GET a.test /1 auth=[] body=", denied, "200 POST B.test.:80 /3 auth=[] body=hi",
		"200 GET a.test /4 auth=[] body=", denied, "200 GET a.test /6 auth=[] body=",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := w.seen(&w.dialed); !slices.Equal(got, []string{"a.test 80", "b.test 80"}) {
		t.Errorf("dialed %q", got)
	}
	if got := w.seen(&w.checked); len(got) != 6 || got[2] != "b.test 80 http" {
		t.Errorf("checked %q", got)
	}
}

// TestRequestsThatAreRefused wants nothing of them to arrive.
func TestRequestsThatAreRefused(t *testing.T) {
	for text, want := range map[string]int{
		"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n":          405,
		"GET / HTTP/1.1\r\n\r\n":                                           400,
		"GET / HTTP/1.1\r\nHost:\r\n\r\n":                                  400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n":           400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nhost: denied.test\r\n\r\n":      400,
		"GET / HTTP/1.1\r\nHost : a.test\r\n\r\n":                          400,
		"GET / HTTP/1.1\r\n Host: a.test\r\n\r\n":                          400,
		"GET / HTTP/1.1\r\nHost: a.test\r\n\tx\rHost: denied.test\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n":                   400,
		"GET / HTTP/1.1\r\nHost: a.test/b\r\n\r\n":                         400,
		"GET / HTTP/1.1\r\nHost: a.test@b.test\r\n\r\n":                    400,
		"GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n":                            400,
		"GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n":                        400,
		"GET / HTTP/1.1\r\nHost: a%2etest\r\n\r\n":                         400,
		"GET http://b.test@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":       400,
		"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":             400,
		"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":               400,
		"GET http:///x HTTP/1.1\r\nHost:\r\n\r\n":                          400,
		"GET a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":                     400,
		"GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n":                          400,
		"\x00\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: x\r\n\r\n":                            501,
		"GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1, 2\r\n\r\n":                            400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: -1\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n":          400,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                          505,
		"GET / HTTP/2.0\r\nHost: a.test\r\n\r\n":                                                    505,
		"GET / HTTP/3.0\r\nHost: a.test\r\n\r\n":                                                    505,
		"GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n":                                               403,
		"GET / HTTP/1.1\r\nHost: asked.test\r\n\r\n":                                                403,
		"GET http://denied.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":                                  403,
		"POST / HTTP/1.1\r\nHost: denied.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n": 403,
		"GET / HTTP/1.1\r\nHost: down.test\r\n\r\n":                                                 502,
		"GET / HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("y", 70<<10) + "\r\n\r\n":          431,
		"GET /" + strings.Repeat("y", 70<<10) + " HTTP/1.1\r\nHost: a.test\r\n\r\n":                 431,
		"TRACE / HTTP/1.1\r\nHost: cred.test\r\n\r\n":                                               405,
	} {
		w := start(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%.80q has arrived", text) })
		a := w.exchange(w.connect(), "GET", text, 1)[0]
		if a.StatusCode != want {
			t.Errorf("%.90q: %s %s", text, a.Status, a.body)
		}
	}
}

// A request for which there is no room is not looked at.
func TestTooManyRequests(t *testing.T) {
	w := start(t, func(http.ResponseWriter, *http.Request) {})
	room, ended := 1, 0
	w.o.Begin = func() func() {
		if room--; room < 0 {
			return nil
		}
		return func() { ended++ }
	}
	c := w.connect()
	for _, want := range []int{200, 503} {
		if a := w.exchange(c, "GET", "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 1)[0]; a.StatusCode != want {
			t.Errorf("%s, want %d", a.Status, want)
		}
	}
	if ended != 1 || len(w.seen(&w.checked)) != 1 {
		t.Errorf("%d have ended, and %q were decided about", ended, w.seen(&w.checked))
	}
}

// TestSmuggling has requests whose end can be seen in two ways: what arrives is one.
func TestSmuggling(t *testing.T) {
	const hidden = "GET /hidden HTTP/1.1\r\nHost: denied.test\r\n\r\n"
	for _, text := range []string{
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: " + fmt.Sprint(len(hidden)+5) + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: " + fmt.Sprint(len(hidden)) + "\r\n\r\n" + hidden,
		"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden),
	} {
		w := start(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "a.test" || r.RequestURI != "/" || r.Header.Get("Content-Length") != "" && len(r.TransferEncoding) > 0 {
				t.Errorf("%s %s %v has arrived", r.Host, r.RequestURI, r.Header)
			}
			_, _ = io.Copy(io.Discard, r.Body)
		})
		w.exchange(w.connect(), "POST", text, 1)
	}
}

func TestHTTP10(t *testing.T) {
	w := start(t, func(rw http.ResponseWriter, r *http.Request) {
		for range 3 {
			_, _ = io.WriteString(rw, r.Host+" ")
			_ = http.NewResponseController(rw).Flush() // chunked, which the client cannot read
		}
	})
	for text, want := range map[string]string{
		"GET / HTTP/1.0\r\n\r\n":                 "127.0.0.1:80 127.0.0.1:80 127.0.0.1:80 ",
		"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n": "a.test a.test a.test ",
	} {
		if a := w.exchange(w.connect(), "GET", text, 1)[0]; a.body != want || a.StatusCode != 200 || len(a.TransferEncoding) > 0 {
			t.Errorf("%q: %s %q %v", text, a.Status, a.body, a.TransferEncoding)
		}
	}
	if got := w.seen(&w.checked); !slices.Contains(got, " 80 http") {
		t.Errorf("checked %q", got)
	}
	if got := w.seen(&w.dialed); !slices.Contains(got, "127.0.0.1 80") {
		t.Errorf("dialed %q", got)
	}
}

// TestTargetsArriveAsSent has letters that URLs have to have encoded, and do not.
func TestTargetsArriveAsSent(t *testing.T) {
	w := start(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.RequestURI) })
	c := w.connect()
	for _, target := range []string{"/", "/a|b{c}\"d^`", "/%7e%7E~/../x", "/?", "/?a=b;c&%zz", "//x/y", "/a//b?c?d", "*", "/x#y"} {
		method := "GET"
		if target == "*" {
			method = "OPTIONS"
		}
		if a := w.exchange(c, method, method+" "+target+" HTTP/1.1\r\nHost: a.test\r\n\r\n", 1)[0]; a.body != target {
			t.Errorf("%q became %q", target, a.body)
		}
	}
}

// TestFields has those that are the connection's, and those that are not.
func TestFields(t *testing.T) {
	got := make(chan http.Header, 1)
	w := start(t, func(rw http.ResponseWriter, r *http.Request) {
		got <- r.Header
		rw.Header()["Content-Type"] = nil
		rw.Header().Add("X-A", "1")
		rw.Header().Add("X-A", "2")
		_, _ = io.WriteString(rw, "<html>")
	})
	a := w.exchange(w.connect(), "GET", "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, X-Foo, Upgrade, HTTP2-Settings\r\nX-Foo: 1\r\n"+
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nX-Bar: 1\r\nX-Forwarded-For: 9.9.9.9\r\nProxy-Authorization: x\r\n\r\n", 1)[0]
	if h := <-got; len(h) != 2 || h.Get("X-Bar") != "1" || h.Get("X-Forwarded-For") != "9.9.9.9" {
		t.Errorf("%v has arrived", h)
	}
	if a.StatusCode != 200 || len(a.Header["Content-Type"]) > 0 || len(a.Header["X-A"]) != 2 || a.body != "<html>" {
		t.Errorf("%s %v %s", a.Status, a.Header, a.body)
	}
}

// TestHostsThatHangUp end the client's connection, so that it sees what has happened.
func TestHostsThatHangUp(t *testing.T) {
	w := start(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.RequestURI == "/half" {
			_, _ = io.WriteString(rw, "half of it")
			_ = http.NewResponseController(rw).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	for _, path := range []string{"/none", "/half"} {
		c := w.connect()
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if path == "/none" {
			if err == nil {
				t.Errorf("an answer: %s", res.Status)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half of it" {
			t.Errorf("%q, %v", body, err)
		}
	}
}
