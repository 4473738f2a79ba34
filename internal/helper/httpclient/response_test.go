package httpclient

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

// All of this is what the reference made of such an answer. An answer that ends
// with its connection has no length.
func TestResponses(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zs := string(z.EncodeAll([]byte("hello zstd"), nil))
	gz := gzipped("hello gz")
	with := func(coding, body string) string {
		return fmt.Sprintf("200 OK\r\nX: 1\r\nContent-Encoding: %s\r\nContent-Length: %d\r\nY: 2\r\nZ: 3\r\n\r\n%s", coding, len(body), body)
	}
	const failed, broken = "failed", "broken"
	for _, test := range []struct{ what, answer, headers, body string }{
		{"repeats come together, only visible ASCII", "200 OK\r\nB: 1\r\nA: 2\r\nb: 3\r\nC: \xff\r\nE:   sp\tx  \r\nF:\r\nContent-Length: 0\r\n\r\n", "b: 1; b: 3; a: 2; e: sp\tx; f: ; content-length: 0; ", ""},
		{"control character", "200 OK\r\nD: \x01x\r\nContent-Length: 0\r\n\r\n", failed, ""},
		{"gzip, order of a map that removes by swapping", with("gzip", gz), "x: 1; z: 3; y: 2; ", "hello gz"},
		{"zstd", with("zstd", zs), "x: 1; z: 3; y: 2; ", "hello zstd"},
		{"two members", with("gzip", gz+gz), "x: 1; z: 3; y: 2; ", "hello gz"},
		{"what follows", with("gzip", gz+"xyz"), "x: 1; z: 3; y: 2; ", "hello gz"},
		{"not what was said", with("gzip", "abcd"), "x: 1; z: 3; y: 2; ", broken},
		{"cut", with("gzip", gz[:len(gz)-3]), "x: 1; z: 3; y: 2; ", broken},
		{"empty gzip", "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "", ""},
		{"other case", with("GZIP", "x"), "x: 1; content-encoding: GZIP; content-length: 1; y: 2; z: 3; ", "x"},
		{"other coding", with("br", "x"), "x: 1; content-encoding: br; content-length: 1; y: 2; z: 3; ", "x"},
		{"chunks and trailer", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;ext=1\r\nab\r\n0\r\nq: 1\r\n\r\n", "transfer-encoding: chunked; ", "ab"},
		{"chunks win", "200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "content-length: 9; transfer-encoding: chunked; ", "ab"},
		{"chunk cut", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "transfer-encoding: chunked; ", broken},
		{"body cut", "200 OK\r\nContent-Length: 5\r\n\r\nabc", "content-length: 5; ", broken},
		{"until the end", "200 OK\r\n\r\nabc", "", "abc"},
		{"same length twice", "200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab", "content-length: 2; content-length: 2; ", "ab"},
		{"two lengths", "200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", failed, ""},
		{"no number", "200 OK\r\nContent-Length: x\r\n\r\nabc", failed, ""},
		{"negative", "200 OK\r\nContent-Length: -1\r\n\r\nabc", failed, ""},
		{"bare line feeds", "200 OK\nA: b\nContent-Length: 2\n\nab", "a: b; content-length: 2; ", "ab"},
		{"folded", "200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nab", failed, ""},
		{"blank before the colon", "200 OK\r\nA : b\r\n\r\n", failed, ""},
		{"no colon", "200 OK\r\nAB\r\n\r\n", failed, ""},
		{"no reason", "299\r\nContent-Length: 2\r\n\r\nab", "content-length: 2; ", "ab"},
		{"early hints", "100 Continue\r\n\r\nHTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "content-length: 2; ", "ab"},
		{"switching", "101 S\r\nUpgrade: x\r\n\r\nxx", "upgrade: x; ", ""},
		{"no content", "204 X\r\nContent-Length: 2\r\n\r\nab", "content-length: 2; ", ""},
		{"four digits", "1000 X\r\n\r\n", failed, ""},
		{"below 100", "099 X\r\n\r\n", failed, ""},
		{"head cut", "200 OK\r\nA: b", failed, ""},
		{"100 headers", "200 OK\r\n" + strings.Repeat("a: x\r\n", 100) + "\r\n", strings.Repeat("a: x; ", 100), ""},
		{"101 headers", "200 OK\r\n" + strings.Repeat("a: x\r\n", 101) + "\r\n", failed, ""},
		{"large head", "200 OK\r\nA: " + strings.Repeat("x", 300_000) + "\r\n\r\n", "a: " + strings.Repeat("x", 300_000) + "; ", ""},
		{"too large head", "200 OK\r\nA: " + strings.Repeat("x", 500_000) + "\r\n\r\n", failed, ""},
	} {
		o := newOrigin(t, func(_ string, c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 "+test.answer)
			_ = c.(*net.TCPConn).CloseWrite()
		})
		got := do(t, client(nil), get(o.url("/")))
		switch {
		case test.headers == failed:
			if want := "-32603 http/request failed: error sending request for url (" + o.url("/") + ")"; got.err != want {
				t.Errorf("%s: %.200v", test.what, got)
			}
		case test.body == broken:
			if !errors.Is(got.bodyErr, ErrBody) || got.headers != test.headers {
				t.Errorf("%s: %.200v", test.what, got)
			}
		case got.headers != test.headers || got.body != test.body || got.bodyErr != nil:
			t.Errorf("%s: %.300v", test.what, got)
		}
	}
}

// A connection is used again when nothing is left on it, and only then.
func TestConnectionsAreUsedAgain(t *testing.T) {
	answers := map[string]string{
		"/length":  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"/chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"/gzip":    fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(gzipped("ok")), gzipped("ok")),
		"/close":   "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"/1.0":     "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"/1.0keep": "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
		"/more":    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
	}
	for path, again := range map[string]bool{"/length": true, "/chunked": true, "/gzip": true, "/close": false, "/1.0": false, "/1.0keep": true, "/more": false} {
		o := newOrigin(t, func(path string, c net.Conn) { _, _ = io.WriteString(c, answers[path]) })
		c := client(nil)
		for range 2 {
			if got := do(t, c, get(o.url(path))); got.body != "ok" {
				t.Errorf("%s: %+v", path, got)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[again]; o.conns != want {
			t.Errorf("%s: %d connections", path, o.conns)
		}
	}
}

func TestTimeouts(t *testing.T) {
	o := newOrigin(t, func(path string, c net.Conn) {
		if path == "/body" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")
		}
		_, _ = io.Copy(io.Discard, c) // until the client gives up
	})
	timed := func(path string, d time.Duration) outcome {
		r := get(o.url(path))
		r.Timed, r.Timeout = true, d
		return do(t, client(nil), r)
	}
	if got := timed("/head", 50*time.Millisecond); got.err != "-32603 http/request failed: error sending request for url ("+o.url("/head")+")" {
		t.Errorf("no head: %+v", got)
	}
	if got := timed("/body", 50*time.Millisecond); !errors.Is(got.bodyErr, ErrBody) || got.body != "abc" {
		t.Errorf("no body: %+v", got)
	}
	if got := timed("/head", 0); got.err != "-32603 http/request failed: request timed out" {
		t.Errorf("no time: %+v", got)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the client hangs up on it
	s.StartTLS()
	t.Cleanup(s.Close)
	c := client(nil)
	c.pool.roots = x509.NewCertPool()
	if got := do(t, c, get(s.URL)); !strings.HasPrefix(got.err, "-32603 http/request failed: error sending request") {
		t.Errorf("an unknown authority: %+v", got)
	}
	c.pool.roots.AddCert(s.Certificate())
	for range 2 {
		if got := do(t, c, get(s.URL)); got.body != "HTTP/1.1" {
			t.Errorf("%+v", got)
		}
	}
	// The same through a proxy's tunnel.
	proxy := newOrigin(t, func(_ string, conn net.Conn) {
		to, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Fine\r\n\r\n")
		go func() { _, _ = io.Copy(to, conn) }()
		_, _ = io.Copy(conn, to)
		_ = conn.Close()
	})
	c = client(map[string]string{"HTTPS_PROXY": proxy.url("")})
	c.pool.roots = x509.NewCertPool()
	c.pool.roots.AddCert(s.Certificate())
	if got := do(t, c, get("https://example.com/")); got.body != "HTTP/1.1" {
		t.Errorf("through a tunnel: %+v", got)
	}
}

func TestCertificatesOfTheEnvironment(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") }))
	s.StartTLS()
	t.Cleanup(s.Close)
	dir := t.TempDir()
	good, junk := dir+"/good.pem", dir+"/junk.pem"
	for path, data := range map[string][]byte{good: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), junk: []byte("junk")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ codex, ssl, want string }{
		{good, junk, ""}, {"", good, ""}, {junk, good, "Failed to load CA certificates from " + junk}, {dir + "/none", "", "Failed to read CA certificate file " + dir + "/none"},
	} {
		t.Setenv("CODEX_CA_CERTIFICATE", test.codex)
		t.Setenv("SSL_CERT_FILE", test.ssl)
		got := do(t, New(), get(s.URL))
		if test.want == "" && got.body != "ok" || !strings.HasPrefix(strings.TrimPrefix(got.err, "-32603 http/request failed: "), test.want) {
			t.Errorf("%v: %+v", test, got)
		}
	}
}

func TestARequestEndsWithItsContext(t *testing.T) {
	gone := make(chan struct{})
	o := newOrigin(t, func(_ string, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nabc")
		_, _ = io.Copy(io.Discard, c)
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := client(nil).Do(ctx, get(o.url("/")))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, ErrBody) {
		t.Error(err)
	}
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the connection stays")
	}
}

func FuzzReadHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\nab"))
	f.Add([]byte("HTTP/1.1 100 C\r\n\r\nHTTP/1.0 999\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readHead(bufio.NewReaderSize(bytes.NewReader(data), 16))
		if err != nil {
			return
		}
		if h.status < 100 || h.status > 999 {
			t.Errorf("status %d", h.status)
		}
		for _, field := range h.headers {
			if !isToken(field.name) || field.name != lower(field.name) || len(field.values) == 0 {
				t.Errorf("a header %q with %d values", field.name, len(field.values))
			}
			for _, v := range field.values {
				if !isValue(v) || strings.Trim(v, " \t") != v {
					t.Errorf("a value %q", v)
				}
			}
		}
		if f, err := h.frame("GET"); err == nil && f.chunked && f.length >= 0 {
			t.Error("it ends in two ways")
		}
	})
}

func FuzzTarget(f *testing.F) {
	f.Add("http://u:p@h:81/a?b#c", "../x")
	f.Add("https://[::1]/", "//y")
	f.Fuzz(func(t *testing.T, text, location string) {
		at, err := parseTarget(text)
		if err != nil || at.scheme != "http" && at.scheme != "https" {
			return
		}
		check := func(at *target) {
			for _, s := range []string{at.path, at.host, at.port, at.basic} {
				if strings.ContainsAny(s, "\r\n\x00") || at.scheme[:4] == "http" && strings.Contains(at.path, " ") {
					t.Errorf("%q: %q goes over the wire", text, s)
				}
			}
		}
		check(at)
		if next, err := at.follow(location); err == nil && (next.scheme == "http" || next.scheme == "https") {
			check(next)
		}
	})
}
