package e2e

import (
	"strings"
	"testing"
)

func TestEscapeByHTTP(t *testing.T) {
	n, _, _, h := saying(t)
	before := len(n.Web.Requests())
	const good = `GET /good HTTP/1.1\r\nHost: web.example\r\n\r\n`
	e := escapes{}
	for _, odd := range []string{
		`GET / HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`GET http://other.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`GET http://web.example@other.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`GET https://other.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\r\nHost: other.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: other.example\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost : other.example\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.1\r\n Host: other.example\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\r\n other.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example,other.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example other.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\x00.other.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example:22\r\n\r\n`,
		`GET / HTTP/1.1\nHost: other.example\n\n`,
		`GET / HTTP/1.1\rHost: other.example\r\r`,
		`GET / HTTP/1.0\r\n\r\n`, `GET /\r\n`, `GET / HTTP/0.9\r\n\r\n`, `\r\n\r\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`GET\t/\tHTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`CONNECT other.example:80 HTTP/1.1\r\nHost: web.example\r\n\r\n`, `CONNECT web.example:80 HTTP/1.1\r\nHost: web.example:80\r\n\r\n' '` + strings.ReplaceAll(good, "web", "other"),
		`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n' 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' '` + strings.ReplaceAll(good, "web", "other"),
		// Within a connection, behind each other and at once.
		good + `' '` + strings.ReplaceAll(good, "web", "other"), good + strings.ReplaceAll(good, "web", "other"),
		// What two parsers may end at different places.
		`POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 80\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding : chunked\r\nContent-Length: 4\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 4\r\nContent-Length: 50\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: +4\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\nGET\r\n\r\nGET /x HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\r\nX: y\rHost: other.example\r\n\r\n`,
		`GET /\r\nHost: other.example\r\n HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: web.example\r\nX: ` + strings.Repeat("x", 40000) + `\r\nHost: other.example\r\n\r\n`,
		strings.Repeat("x", 40000) + ` / HTTP/1.1\r\nHost: other.example\r\n\r\n`,
	} {
		// Whatever is said to it: what counts is what servers see.
		e["raw 93.184.216.34:80 '"+odd+"'"] = ".*"
	}
	e.try(t, h, nil)
	for _, r := range n.Web.Requests()[before:] {
		if r.Host != "web.example" || strings.Contains(r.Path, "other") || strings.HasPrefix(r.Path, "/x") || r.Header.Get("Upgrade") == "h2c" {
			t.Errorf("a server saw %+v", r)
		}
	}
	if got := len(n.Web.Requests()) - before; got < 3 {
		t.Errorf("servers saw %d requests", got)
	}
}
