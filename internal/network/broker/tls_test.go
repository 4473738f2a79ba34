package broker

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTLS(t *testing.T) {
	w, config := overTLS(t, echo, "cred.test")
	c := w.client(config)
	for range 2 {
		a := w.get(c, request(t, "POST", "https://cred.test/x", "hi"))
		if a.body != `POST cred.test /x auth=["Bearer hunter2"] body=hi` || a.ProtoMajor != 2 {
			t.Errorf("%s: %s", a.Proto, a.body)
		}
	}
	if got := w.seen(&w.checked); !slices.Equal(got, []string{"cred.test 443 tls", "cred.test 443 tls"}) {
		t.Errorf("checked %q", got)
	}
	if got := w.seen(&w.dialed); !slices.Equal(got, []string{"cred.test 443"}) {
		t.Errorf("dialed %q", got)
	}
}

// TestFrontingInTLS has another host in the request than in the handshake.
func TestFrontingInTLS(t *testing.T) {
	w, config := overTLS(t, func(http.ResponseWriter, *http.Request) { t.Error("it has arrived") }, "cred.test")
	config.ServerName = "cred.test"
	for _, next := range [][]string{nil, {"http/1.1"}} {
		config.NextProtos = next
		if a := w.get(w.client(config), request(t, "GET", "https://a.test/", "")); a.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s %s", a.Status, a.body)
		}
	}
	if got := w.seen(&w.checked); len(got) > 0 {
		t.Errorf("checked %q", got)
	}
}

// TestAnotherNameInTheHandshake has a client that says another name than the one that
// it was let in for.
func TestAnotherNameInTheHandshake(t *testing.T) {
	w, config := overTLS(t, echo, "cred.test")
	for _, name := range []string{"a.test", ""} {
		c := config.Clone()
		c.ServerName, c.InsecureSkipVerify = name, true
		if err := tls.Client(w.connect(), c).HandshakeContext(t.Context()); err == nil {
			t.Errorf("%q was let in", name)
		}
	}
}

// TestHostsWithABadCertificate get no request, and no secret.
func TestHostsWithABadCertificate(t *testing.T) {
	arrived := func(http.ResponseWriter, *http.Request) { t.Error("it has arrived") }
	for what, change := range map[string]func(w *world, public *Authority) (want string){
		"unknown authority": func(w *world, _ *Authority) string {
			w.o.RootCAs = pool509(t, authority(t))
			return "x509: certificate signed by unknown authority"
		},
		"the sandbox's own": func(w *world, _ *Authority) string {
			w.o.RootCAs = pool509(t, w.o.Authority)
			return "x509: certificate signed by unknown authority"
		},
		"other name": func(w *world, public *Authority) string {
			w.host.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return public.Leaf("a.test", time.Now())
			}
			return "x509: certificate is valid for a.test, not cred.test"
		},
		"old": func(w *world, public *Authority) string {
			w.host.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return public.Leaf("cred.test", time.Now().Add(-48*time.Hour))
			}
			return "x509: certificate has expired"
		},
	} {
		w, config, public := overTLSBy(t, arrived, "cred.test")
		want := change(w, public)
		a := w.get(w.client(config), request(t, "GET", "https://cred.test/", ""))
		if a.StatusCode != 502 || !strings.Contains(a.body, "the certificate of cred.test:443 is not valid: "+want) {
			t.Errorf("%s: %s %s", what, a.Status, a.body)
		}
	}
}

// TestCurl is a client that is not ours.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	for _, args := range [][]string{{"--http1.1"}, {"--http2"}, {"--http1.1", "-H", "Expect: 100-continue"}} {
		w, _ := overTLS(t, echo, "cred.test")
		ca := t.TempDir() + "/ca.pem"
		if err := os.WriteFile(ca, w.o.Authority.PEM(), 0o600); err != nil {
			t.Fatal(err)
		}
		address := w.listen()
		args = append(args, "-sS", "--noproxy", "*", "--cacert", ca, "--connect-to", "cred.test:443:"+address,
			"-H", "Authorization: token PLACEHOLDER", "-d", "hi", "https://cred.test/x")
		out, err := exec.CommandContext(t.Context(), curl, args...).CombinedOutput()
		if want := `POST cred.test /x auth=["token hunter2"] body=hi`; err != nil || string(out) != want {
			t.Errorf("%q: %s, %v", args[:2], out, err)
		}
	}
}
