package hello

import (
	"reflect"
	"strings"
	"testing"
)

// parse gives the bytes as they would come, one after the other (of many, some at a
// time), and wants the same as when they come at once.
func parse(t *testing.T, b []byte) (Hello, bool) {
	t.Helper()
	want, done := Parse(b)
	for n := 0; n < len(b); n += 1 + len(b)/500 {
		h, early := Parse(b[:n])
		if early {
			if !done || !reflect.DeepEqual(h, want) {
				t.Errorf("%.60q: after %d bytes of %d: %+v, not %+v", b, n, len(b), h, want)
			}
			break
		}
	}
	return want, done
}

func TestHTTP(t *testing.T) {
	const end = "\r\n\r\n"
	for text, want := range map[string]Hello{
		"GET / HTTP/1.1\r\nHost: A.test" + end:                             {Kind: HTTP, Name: "a.test"},
		"GET / HTTP/1.1\r\nX: y\r\nhOsT:\t a.test.:80 " + end:              {Kind: HTTP, Name: "a.test"},
		"GET / HTTP/1.0" + end:                                             {Kind: HTTP},
		"GET / HTTP/1.1\nHost: a.test\n\n":                                 {Kind: HTTP, Name: "a.test"},
		"VERSION-CONTROL * HTTP/1.1\r\nHost: a.test" + end:                 {Kind: HTTP, Name: "a.test"},
		"GET http://a.test/b HTTP/1.1\r\nHost: a.test" + end:               {Kind: HTTP, Name: "a.test"},
		"GET http://a.test?b HTTP/1.1\r\nHost: a.test:80" + end:            {Kind: HTTP, Name: "a.test"},
		"GET http://a.test HTTP/1.1" + end:                                 {Kind: HTTP, Name: "a.test"},
		"GET http://a.test/ HTTP/1.1\r\nHost: b.test" + end:                {Kind: HTTP},
		"GET http://b.test@a.test/ HTTP/1.1" + end:                         {Kind: HTTP},
		"GET a.test HTTP/1.1\r\nHost: a.test" + end:                        {Kind: HTTP},
		"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test" + end:                {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test" + end:             {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n Host: b.test" + end:    {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: a.test\r\nHost : b.test" + end:            {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: a.test\r\nX: y\rHost: b.test" + end:       {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: a.test b.test" + end:                      {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: a.test, b.test" + end:                     {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: " + end:                                   {Kind: HTTP},
		"GET / HTTP/1.1\r\nHost: 192.0.2.1" + end:                          {Kind: HTTP, Name: "192.0.2.1"},
		"GET / HTTP/1.1\r\nHost: [2001:DB8:0::1]:80" + end:                 {Kind: HTTP, Name: "2001:db8::1"},
		"\r\nGET / HTTP/1.1\r\nHost: a.test" + end:                         {Kind: HTTP},
		"GET  /  HTTP/1.1\r\nHost: a.test" + end:                           {Kind: HTTP},
		"GET\t/\tHTTP/1.1\r\nHost: a.test" + end:                           {Kind: HTTP},
		"GET / HTTP/2.0\r\nHost: a.test" + end:                             {Kind: HTTP, Name: "a.test"},
		"GET / http/1.1\r\nHost: a.test" + end:                             {Kind: HTTP, Name: "a.test"},
		"GET / HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("y", Max): {Kind: HTTP},
		"GET /" + strings.Repeat("y", Max):                                 {Kind: HTTP},
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                 {Kind: H2C},
		"SSH-2.0-OpenSSH_9.6\r\n":                                          {},
		"GET /\r\n":                                                        {},
		"get key\r\n":                                                      {},
		"GET \x00\x01":                                                     {},
		"PING\r\n":                                                         {},
		"*1\r\n$4\r\nPING\r\n":                                             {},
		"\x00\x00\x00\x08\x04\xd2\x16\x2f":                                 {},
		"\x13BitTorrent protocol":                                          {},
		strings.Repeat("x", 40):                                            {},
		"\r\n\r\n\x16":                                                     {},
		" GET / HTTP/1.1\r\n":                                              {},
	} {
		if h, done := parse(t, []byte(text)); !done || !reflect.DeepEqual(h, want) {
			t.Errorf("%.80q: %+v, %v, want %+v", text, h, done, want)
		}
	}
	for _, text := range []string{"", "G", "GET", "GET ", "GET / HTTP/1.1", "GET / HTTP/1.1\r", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a.test\r\n", "\r\n", "PRI * HTTP/2.0", strings.Repeat("x", 32)} {
		if h, done := Parse([]byte(text)); done || h.Name != "" {
			t.Errorf("%q is %+v, %v", text, h, done)
		}
	}
}

func TestHost(t *testing.T) {
	for text, want := range map[string]string{
		"A.test": "a.test", "a.test.": "a.test", "_x.a-b.test": "_x.a-b.test", "localhost": "localhost", "xn--bcher-kva.test": "xn--bcher-kva.test",
		"127.0.0.1": "127.0.0.1", "[::1]": "::1", "[::FFFF:10.0.0.1]": "10.0.0.1", "a.test:1": "a.test", "[::1]:65535": "::1",
		"": "", ".": "", "a..test": "", ".a": "", "a.test..": "", "a b": "", "a/b": "", "a@b": "", "a%41": "", "bücher.test": "", "a\x00": "", "*": "", "*.a": "",
		"a:": "", "a:0": "", "a:65536": "", "a:80:80": "", "a:+80": "", "::1": "", "[::1": "", "::1]": "", "[127.0.0.1]": "", "[a.test]": "", "[fe80::1%25lo]": "", "[fe80::1%lo]": "",
		"127.1": "", "2130706433": "", "0x7f.1": "", "0x7f000001": "", "a.0x10": "", "010.0.0.1": "", "127.0.0.1.": "",
		strings.Repeat("a", 64): "", strings.Repeat("a.", 127) + "b": "", strings.Repeat("a.", 126) + "b": strings.Repeat("a.", 126) + "b",
	} {
		if host, _, ok := Host(text); host != want || ok != (want != "") {
			t.Errorf("%.40q: %q, %v, want %q", text, host, ok, want)
		}
	}
	for text, want := range map[string]uint16{"a": 0, "a:1": 1, "[::1]:443": 443, "10.0.0.1:65535": 65535} {
		if _, port, ok := Host(text); port != want || !ok {
			t.Errorf("%q: port %d, %v", text, port, ok)
		}
	}
}
