package egress

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// authority is a CA made for the test, with a certificate for all hosts of it.
type authority struct {
	file   string
	server *tls.Config
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"registry.test", "proxy.test", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), 0o600); err != nil {
		t.Fatal(err)
	}
	return authority{file, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leafDER}, PrivateKey: key}}}}
}

// origin is a server that echoes over WebSockets, and answers other requests.
func origin(t *testing.T, secure *tls.Config, saw func(*http.Request)) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if saw != nil {
			saw(r)
		}
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		case r.URL.Path == "/refused":
			http.Error(w, "not for you", http.StatusConflict)
			return
		case r.Header.Get("Upgrade") == "":
			_, _ = io.WriteString(w, "here")
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, text, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	}))
	if secure != nil {
		s.TLS = secure.Clone()
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// connectProxy is a proxy that tunnels every CONNECT to one address and refuses
// all other requests but plain GETs, which it answers itself.
type connectProxy struct {
	addr string
	mu   sync.Mutex
	// mu guards asked, the requests that came.
	asked []*http.Request
}

func (p *connectProxy) requests() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func newProxy(t *testing.T, secure *tls.Config, auth, to string) *connectProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &connectProxy{addr: l.Addr().String()}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			serving.Go(func() { defer c.Close(); p.serve(c, auth, to) })
		}
	})
	return p
}

func (p *connectProxy) serve(c net.Conn, auth, to string) {
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != auth {
		_, _ = io.WriteString(c, "HTTP/1.1 407 \x1b[31mnot with "+r.Header.Get("Proxy-Authorization")+"\r\nContent-Length: 0\r\n\r\n")
		return
	}
	if r.Method != http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nforwarded")
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		out.Close()
	}()
	_, _ = io.Copy(c, out)
	c.Close()
	<-done
}

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}
