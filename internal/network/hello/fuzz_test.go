package hello

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
)

// FuzzTLS holds Parse against crypto/tls: where both read a name it is the same, and
// no name is read out of what crypto/tls reads without one.
func FuzzTLS(f *testing.F) {
	for _, c := range []*tls.Config{
		{ServerName: "a.test", NextProtos: []string{"h2"}}, {InsecureSkipVerify: true},
		{ServerName: "A.b-c.test", MaxVersion: tls.VersionTLS12},
	} {
		c.CurvePreferences = []tls.CurveID{tls.X25519} // small ones, which are made smaller sooner
		b := client(f, c)
		f.Add(b)
		f.Add(records(b[5:], 7))
	}
	f.Add(records(message(sni("a.test")+sni("b.test")), 999))
	f.Add(records(message(sni("a.test")+ext(extECH, "\x00")), 99))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, done := Parse(b)
		for n := 1; n < len(b); n *= 2 {
			if early, ok := Parse(b[:n]); ok && (early.Kind != h.Kind || early.Name != h.Name || early.Hidden != h.Hidden || !done) {
				t.Fatalf("%+v after %d bytes, and then %+v", early, n, h)
			}
		}
		if h.Kind != TLS || !done {
			return
		}
		if name, read := oracle(b); read && h.Name != "" && !strings.EqualFold(h.Name, name) {
			t.Fatalf("name %q, for crypto/tls %q", h.Name, name)
		}
	})
}

// FuzzHTTP holds Parse against net/http in the same way.
func FuzzHTTP(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"))
	f.Add([]byte("GET http://a.test/ HTTP/1.1\r\nHost: a.test:80\r\nX: y\r\n\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n"))
	f.Add([]byte("POST * HTTP/1.0\nHost : [::1]\n X: y\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, done := Parse(b)
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		if len(b) < Max && (!done || h.Kind != HTTP && h.Kind != H2C) {
			t.Fatalf("net/http reads a request of %q", b)
		}
		if host, _, _ := Host(r.Host); h.Name != "" && h.Name != host {
			t.Fatalf("host %q, for net/http %q", h.Name, r.Host)
		}
	})
}
