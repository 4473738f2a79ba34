package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// Nothing is decrypted, so that a client sees the server's own certificate, and what
// the server sends comes when it is sent.
func TestTrap104NoInterception(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("web.example")}})
	b.must("fs/writeFile", map[string]any{"path": "file:///workspace/ca.pem", "dataBase64": base64Of(string(b.n.CA.PEM()))})
	visit := "SSL_CERT_FILE=/workspace/ca.pem visit "
	for _, scheme := range []string{"https", "http"} {
		printed := make(chan string)
		id := fmt.Sprint("p", serial.Add(1))
		b.watch(id, func(e event) {
			if e.stream == "stdout" {
				printed <- string(e.data)
			}
		})
		if err := b.spawnAs(id, nil, "/bin/sh", "-c", visit+scheme+"://web.example/events/"+scheme); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			text := fmt.Sprint("event ", i)
			b.n.Web.Events(scheme) <- text
			select {
			case got := <-printed:
				if got != "data: "+text+"\n\n" {
					t.Fatalf("after %q came %q", text, got)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%q does not come", text)
			}
		}
		close(b.n.Web.Events(scheme))
		if got := <-printed; got != "ok\n" {
			t.Errorf("at the end came %q", got)
		}
	}
	had := b.memory()
	if got := b.sh(visit + "https://web.example/bytes/268435456 | wc -c"); got != "268435459" { // and "ok"
		t.Errorf("of 256 MiB came %s", got)
	}
	if has := b.memory(); has > had+64 {
		t.Errorf("the daemon has %d MiB more after 256 MiB passed", has-had)
	}
}

func TestTrap106Fronting(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("web.example", "other.example"), allow("2606:4700::/32")}})
	web, other, hidden, byAddress := testnet.Web.String(), testnet.Other.String(), "151.101.9.9", "["+testnet.Web6.String()+"]"
	b.n.DNS.Set("evil.example", time.Minute, web, hidden)
	for _, name := range []string{"web.example", "other.example"} {
		b.sh("probe name " + name + " 8.8.8.8:53")
	}
	for _, tt := range []struct{ probe, want string }{
		{"tls " + web + ":443 web.example", "ok 200"},
		{"tls " + hidden + ":443 web.example", "refused"}, // no answer of any allowed name
		{"tls " + other + ":443 web.example", "reset"},    // one of another's
		{"tls " + web + ":443 evil.example", "reset"},
		{"tls " + web + ":443 -", "reset"},
		{"ech " + web + ":443 web.example evil.example", "reset"},
		{"ech " + web + ":443 evil.example web.example", "reset"},
		{"http " + web + ":80 web.example", "ok 200"},
		{"http " + web + ":80 web.example web.example evil.example web.example", "ok 200 200 403 200"},
		{"http " + web + ":80 evil.example", "ok 403"},
		{"http " + other + ":80 web.example", "ok 403"},
		{"banner " + web + ":443", "reset"},
		// A rule with the address is about whatever is there.
		{"tls " + byAddress + ":443 evil.example", "ok 200"},
		{"tls " + byAddress + ":443 -", "ok 200"},
		{"http " + byAddress + ":80 evil.example", "ok 200"},
	} {
		b.tells(tt.probe, tt.want)
	}
	if got := b.sh("probe ech " + byAddress + ":443 evil.example web.example"); !strings.Contains(got, "ECH") {
		t.Errorf("an encrypted name at an allowed address does not reach the server: %s", got)
	}
	for _, r := range b.n.Web.Requests() {
		if r.Host == "evil.example" && r.To.Addr() != testnet.Web6 {
			t.Errorf("a server saw %+v", r)
		}
	}
	for _, reason := range []string{"no-name", "hidden-name", "wrong-name"} {
		expect(t, "the log", b.server.logs.String(), `"reason":"`+reason+`"`)
	}
}

// Where a credential is added, what is within TLS is seen, and has to name the same.
func TestTrap106FrontingWhereTLSIsOpened(t *testing.T) {
	n, config := newInternet(t)
	n.DNS.Set("shared.example", time.Minute, testnet.Web.String())
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRoot(t, config+profile+fmt.Sprintf("[profile.default.network]\nmode = \"rules\"\nintercept = true\n"+
		"[[profile.default.network.rule]]\nallow = [\"web.example\"]\ncredential = { secret_file = %q }\n"+
		"[[profile.default.network.rule]]\nallow = [\"other.example\", \"shared.example\"]\n", secret))
	t.Setenv("SSL_CERT_FILE", r.file("world.pem", string(n.CA.PEM())))
	b := &sandbox{harness: r.serveIn(n).connect("/", ""), n: n, root: r}
	for _, name := range []string{"web.example", "other.example", "shared.example"} {
		b.sh("probe name " + name + " 8.8.8.8:53")
	}
	at := "tls " + testnet.Web.String() + ":443 web.example"
	b.tells(at, "ok 200")
	for _, host := range []string{"evil.example", "other.example", "shared.example", "169.254.169.254"} {
		if got := b.sh("probe " + at + " " + host); got != "ok 403" && got != "ok 421" {
			t.Errorf("for %s within TLS: %s", host, got)
		}
	}
	for _, request := range n.Web.Requests() {
		if request.Host != "web.example" {
			t.Errorf("a server saw %+v", request)
		}
	}
}
