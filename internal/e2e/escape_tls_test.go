package e2e

import (
	"testing"
)

func TestEscapeByTLS(t *testing.T) {
	n, _, _, h := saying(t)
	const closed, at = "connection reset by peer|broken pipe|EOF", " 93.184.216.34:443 "
	e := escapes{
		"hello" + at + "web.example": "out: .*", "hello" + at + "WEB.Example": "out: .*",
		"hello" + at + "web.example records": "out: .*", "hello" + at + "web.example segments": "out: .*",
		// An address of the name's that it was not an answer to.
		"hello 151.101.0.223:443 web.example": "connection refused", "hello 93.184.216.34:8443 web.example": "connection refused",
	}
	for _, odd := range []string{
		"other.example", "other.example records", "other.example segments", "other.example twice", "other.example two", "other.example alert",
		"web.example none", "web.example ech", "web.example.", "web.example..", `web.example\\x00`, `web.example\\x00.other.example`, `other.example\\x00web.example`,
		"93.184.216.34", "xweb.example", "web.example:443", "''", "suffix.example", ".suffix.example", "a.suffix.example",
	} {
		e["hello"+at+odd] = closed
	}
	// A second hello behind the first is the server's to judge: it is within the connection.
	e["hello"+at+"other.example behind"] = ".*"
	e["raw"+at+`'\x16\x03\x01\x00\x01\x01' '\x17\x03\x03\x00\x01\x01'`] = closed
	e["raw"+at+`'\x80\x2e\x01\x00\x02\x00\x15'`] = closed + "|i/o timeout"
	e["raw"+at+`'GET / HTTP/1.1\r\nHost: other.example\r\n\r\n'`] = `out: "HTTP/1.1 403 .*`
	e["raw"+at+`'CONNECT other.example:443 HTTP/1.1\r\nHost: web.example\r\n\r\n'`] = closed + `|out: "HTTP/1.1 40.*`
	e.try(t, h, nil)
	for _, r := range n.Web.Requests() {
		if r.Host != "web.example" {
			t.Errorf("a server saw %+v", r)
		}
	}
}
