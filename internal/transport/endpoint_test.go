package transport

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func without(header string) string {
	var kept strings.Builder
	for line := range strings.SplitAfterSeq(upgradeHeaders, "\r\n") {
		if !strings.HasPrefix(line, header+":") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func TestHTTPEndpoints(t *testing.T) {
	l := listen(t, echo)
	const host, origin = "Host: x\r\n", "Origin: https://x\r\n"
	long64 := strings.Repeat("a", 64)
	for _, test := range []struct {
		request, headers string
		status           int
		body             string
	}{
		{"GET /readyz", host, 200, ""},
		{"HEAD /readyz", host, 200, ""},
		{"GET /readyz?a=b", host, 200, ""},
		{"GET /readyz", upgradeHeaders, 200, ""},
		{"POST /readyz", host + "Content-Length: 0\r\n", 405, ""},
		{"DELETE /readyz", host, 405, ""},
		{"OPTIONS /readyz", host, 405, ""},
		{"GET /healthz", host, 404, ""},
		{"GET /livez", host, 404, ""},
		{"GET /metrics", host, 404, ""},
		{"GET /readyz/", host, 404, ""},
		{"GET /ws", upgradeHeaders, 404, ""},
		{"POST /x", host, 404, ""},
		{"OPTIONS *", host, 404, ""},
		{"GET //", host, 404, ""},
		{"GET /environments/", upgradeHeaders, 404, ""},
		{"GET /environments/a/b", upgradeHeaders, 404, ""},
		{"GET /environments/.a", upgradeHeaders, 404, ""},
		{"GET /environments/a%20b", upgradeHeaders, 404, ""},
		{"GET /environments/..%2f", upgradeHeaders, 404, ""},
		{"GET /environments/" + long64 + "a", upgradeHeaders, 404, ""},
		{"GET /", host, 400, "Connection header did not include 'upgrade'"},
		{"GET /?a=b", host, 400, "Connection header did not include 'upgrade'"},
		{"GET /environments/a", host, 400, "Connection header did not include 'upgrade'"},
		{"GET /", without("Connection"), 400, "Connection header did not include 'upgrade'"},
		{"GET /", without("Upgrade"), 400, "`Upgrade` header did not include 'websocket'"},
		{"GET /", without("Upgrade") + "Upgrade: h2c\r\n", 400, "`Upgrade` header did not include 'websocket'"},
		{"GET /", without("Sec-WebSocket-Version"), 400, "`Sec-WebSocket-Version` header did not include '13'"},
		{"GET /", without("Sec-WebSocket-Version") + "Sec-WebSocket-Version: 8\r\n", 400, "`Sec-WebSocket-Version` header did not include '13'"},
		{"GET /", without("Sec-WebSocket-Key"), 400, "`Sec-WebSocket-Key` header missing"},
		{"POST /", host + "Content-Length: 0\r\n", 405, "Request method must be `GET`"},
		{"HEAD /", upgradeHeaders, 405, ""},
		{"PUT /environments/a", upgradeHeaders, 405, "Request method must be `GET`"},
		// Origin comes before everything else.
		{"GET /", upgradeHeaders + origin, 403, ""},
		{"GET /", upgradeHeaders + "Origin:\r\n", 403, ""},
		{"GET /readyz", host + origin, 403, ""},
		{"POST /x", host + "oRiGiN: null\r\n", 403, ""},
		{"GET /environments/a", upgradeHeaders + "Origin: http://127.0.0.1\r\n", 403, ""},
	} {
		s := dial(t, l)
		s.write([]byte(test.request + " HTTP/1.1\r\n" + test.headers + "\r\n"))
		method, _, _ := strings.Cut(test.request, " ")
		r, err := http.ReadResponse(s.r, &http.Request{Method: method})
		if err != nil {
			t.Errorf("%s: %v", test.request, err)
			continue
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != test.status || string(body) != test.body {
			t.Errorf("%s with %q:\n got %d %q, %v\nwant %d %q", test.request, test.headers, r.StatusCode, body, err, test.status, test.body)
		}
		if want := map[bool]string{true: "GET,HEAD"}[test.status == 405 && strings.HasSuffix(test.request, "/readyz")]; r.Header.Get("Allow") != want {
			t.Errorf("%s: allow is %q", test.request, r.Header.Get("Allow"))
		}
	}
}

func TestUpgradeIsPlain(t *testing.T) {
	l := listen(t, echo)
	for _, more := range []string{
		"", "Sec-WebSocket-Protocol: chat, superchat\r\n", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n", "Authorization: Bearer x\r\n",
	} {
		s := dial(t, l)
		s.write([]byte("GET /?any=query HTTP/1.1\r\n" + upgradeHeaders + more + "\r\n"))
		head := strings.ToLower(s.head())
		if !strings.HasPrefix(head, "http/1.1 101 ") || !strings.Contains(head, "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n") ||
			strings.Contains(head, "protocol:") || strings.Contains(head, "extensions:") {
			t.Errorf("the answer is %q", head)
		}
		s.send(text, "hello")
		s.expect(text, "hello")
	}
	mixed := dial(t, l)
	mixed.write([]byte("GET / HTTP/1.1\r\nHost: x\r\nCONNECTION: keep-alive, uPGRADE\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	if head := mixed.head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Errorf("the answer is %q", head)
	}
}

func TestTheHandlerIsToldWhoConnectsWhere(t *testing.T) {
	type call struct{ environment, peer string }
	calls := make(chan call, 1)
	l := listen(t, func(_ context.Context, _ proto.Conn, environment, peer string) { calls <- call{environment, peer} })
	longest := strings.Repeat("a", 64)
	for target, want := range map[string]string{"/": "", "/?x": "", "/environments/a": "a", "/environments/A-1.b_?x=y": "A-1.b_", "/environments/" + longest: longest} {
		s := dialWS(t, l, target)
		if got := <-calls; got.environment != want || got.peer != "exec-server websocket "+s.LocalAddr().String() {
			t.Errorf("%s: %+v, want environment %q and peer %s", target, got, want, s.LocalAddr())
		}
		s.dropped() // the handler has returned
	}
}
