package registry

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/exec-server/exec-server/internal/remote/credential"
	"github.com/exec-server/exec-server/internal/remote/egress"
	"github.com/exec-server/exec-server/internal/remote/noise"
)

// call is a request that came to the test's registry.
type call struct {
	*http.Request
	body string
}

// fake starts a registry that answers all calls with f, and a client for it.
func fake(t *testing.T, source credential.Source, f http.HandlerFunc) (*Client, *[]call) {
	t.Helper()
	var calls []call
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, call{r, string(body)})
		f(w, r)
	}))
	t.Cleanup(s.Close)
	out, err := egress.New(egress.Options{ProxyURL: "none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.HTTP().CloseIdleConnections)
	return &Client{Base: s.URL + "/base//", EnvironmentID: " env-1 ", Credential: source, HTTP: out.HTTP()}, &calls
}

func answer(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

const token = "s3cr3t-t0ken"

func bearer(t *testing.T) credential.Source {
	t.Helper()
	s, err := credential.Bearer(token)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scoped is a credential that is made for one environment.
type scoped struct{ credential.Source }

func (scoped) Scoped() bool { return true }

// sensitive counts what it is told.
type sensitive struct {
	credential.Source
	refused int
}

func (s *sensitive) Refused() { s.refused++ }

func publicKey(t *testing.T) noise.PublicKey {
	t.Helper()
	k := noise.PublicKey{X25519: make([]byte, 32), MLKEM768: make([]byte, 1184)}
	_, _ = rand.Read(k.X25519)
	return k
}

// deaf is an HTTP client whose peer says nothing.
func deaf() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return ours, nil
	}}}
}
