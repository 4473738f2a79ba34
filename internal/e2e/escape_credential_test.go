package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// The secret of a rule goes to the rule's hosts, by TLS, in its own field, whatever a
// program does to have it elsewhere.
func TestEscapeOfCredentials(t *testing.T) {
	n, config := newInternet(t)
	for _, host := range []string{"web.example", "other.example"} {
		n.Web.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/away" {
				http.Redirect(w, r, "https://other.example/", http.StatusTemporaryRedirect)
			}
		}))
	}
	const secret, placeholder = "open-sesame", "the-key-goes-here"
	r := newRoot(t, "")
	key := r.file("key", secret)
	r = newRoot(t, config+profile+fmt.Sprintf("[profile.default.network]\nmode = \"rules\"\nintercept = true\n"+
		"[[profile.default.network.rule]]\nallow = [\"web.example\"]\ncredential = { secret_file = %q, placeholder = %q }\n"+
		"[[profile.default.network.rule]]\nallow = [\"other.example\", \"151.101.0.223\"]\nports = [80, 443]\n", key, placeholder))
	t.Setenv("SSL_CERT_FILE", r.file("world.pem", string(n.CA.PEM())))
	h := r.serveIn(n).connect("/", "")
	h.sh("visit https://web.example/; visit http://other.example/")
	const at = "https 93.184.216.34:443 web.example "
	e := escapes{}
	for _, request := range []string{
		`GET /away HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.1\r\nHost: other.example\r\n\r\n`,
		`GET https://other.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`GET / HTTP/1.0\r\n\r\n`,
		`TRACE / HTTP/1.1\r\nHost: web.example\r\n\r\n`, `TRACK / HTTP/1.1\r\nHost: web.example\r\n\r\n`,
		`CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n`,
		`GET /a HTTP/1.1\r\nHost: web.example\r\nConnection: Authorization\r\nX-Copy: the-key-goes-here\r\nCookie: the-key-goes-here\r\nProxy-Authorization: Bearer the-key-goes-here\r\n\r\n`,
		`POST /the-key-goes-here?the-key-goes-here HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization, X-Copy\r\n\r\n11\r\nthe-key-goes-here\r\n0\r\nAuthorization: the-key-goes-here\r\nX-Copy: the-key-goes-here\r\n\r\n`,
		`GET /b HTTP/1.1\r\nHost: web.example\r\nAuthorization: Bearer mine\r\nAuthorization: the-key-goes-here the-key-goes-here\r\n\r\n`,
		`GET /c HTTP/1.1\r\nHost: web.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
		`GET /d HTTP/1.1\r\nHost: web.example.\r\n\r\n`, `GET /e HTTP/1.1\r\nHost: web.example:8443\r\n\r\n`,
		`GET /f HTTP/1.1\r\nHost: web.example\r\nMax-Forwards: 0\r\nX-HTTP-Method-Override: TRACE\r\n\r\n`,
	} {
		e[at+"'"+request+"'"] = ".*"
	}
	for _, request := range []string{
		`'GET /plain HTTP/1.1\r\nHost: web.example\r\nAuthorization: the-key-goes-here\r\n\r\n'`,
	} {
		e["raw 93.184.216.34:80 "+request] = "connection refused|connection reset by peer|broken pipe|EOF|out: \"HTTP/1.1 403.*"
	}
	for _, host := range []string{"other.example", "151.101.0.223"} {
		e[`raw 151.101.0.223:80 'GET /plain HTTP/1.1\r\nHost: `+host+`\r\nAuthorization: Bearer the-key-goes-here\r\n\r\n'`] = `out: "HTTP/1.1 200.*`
	}
	// The name is one whose rule has a secret, and the address one that is allowed.
	e["https 151.101.0.223:443 web.example "+`'GET / HTTP/1.1\r\nHost: web.example\r\n\r\n'`] = ".*unknown authority|" + ".*reset by peer|EOF"
	e.try(t, h, nil)
	out := h.sh("cat /proc/*/environ /proc/self/mounts /run/exec-server/*.pem /etc/* 2>/dev/null; /bin/escape " + at + `'GET /g HTTP/1.1\r\nHost: web.example\r\n\r\n'`)
	if strings.Contains(out, secret) || !strings.Contains(out, "200 OK") {
		t.Errorf("in the sandbox: %q", out)
	}
	had := 0
	for _, q := range n.Web.Requests() {
		all := fmt.Sprintf("%+v", q)
		if (q.Host == "web.example" || q.Host == "web.example.") && q.TLS && q.To.Addr().Unmap() == testnet.Web {
			if strings.Count(all, secret) != 1 || !strings.Contains(q.Header.Get("Authorization"), secret) {
				t.Errorf("the host saw %s", all)
			}
			had++
		} else if strings.Contains(all, secret) {
			t.Errorf("another host saw %s", all)
		}
	}
	if had < 5 {
		t.Errorf("the host was asked %d times", had)
	}
}
