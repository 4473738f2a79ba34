package broker

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/hello"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
)

// said is a client that says some bytes and no more.
type said struct {
	net.Conn
	in io.Reader
}

func (c *said) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *said) Write(p []byte) (int, error)      { return len(p), nil }
func (c *said) Close() error                     { return nil }
func (c *said) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *said) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *said) SetDeadline(time.Time) error      { return nil }
func (c *said) SetReadDeadline(time.Time) error  { return nil }
func (c *said) SetWriteDeadline(time.Time) error { return nil }

// FuzzServe wants that whatever a client sends, what a host reads is a request for
// that host, that it was allowed, and that it has the credential.
func FuzzServe(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n"))
	f.Add([]byte("POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n"))
	f.Add([]byte("GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\nConnection: Upgrade, Authorization\r\nUpgrade: websocket\r\nAuthorization: x\r\n\r\n"))
	f.Add([]byte("POST /x HTTP/1.0\r\nHost: a.test:80\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var mu sync.Mutex
		allowed, arrived := 0, 0 // guarded by mu
		var hosts sync.WaitGroup
		Serve(context.Background(), &said{in: bytes.NewReader(b)}, Options{
			To: netip.MustParseAddrPort("127.0.0.1:80"),
			Check: func(host string, _ uint16, _ rules.Protocol) rules.Decision {
				if host != "a.test" {
					return rules.Decision{}
				}
				mu.Lock()
				defer mu.Unlock()
				allowed++
				return rules.Decision{Verdict: rules.Allow, Credential: &rules.Credential{Header: "X-Secret"}}
			},
			Secret: func(context.Context, *rules.Credential) (secret.Secret, error) { return secret.New("s3"), nil },
			Dial: func(_ context.Context, host string, _ uint16) (net.Conn, error) {
				if host != "a.test" {
					t.Errorf("%q is dialed", host)
				}
				ours, theirs := net.Pipe()
				hosts.Go(func() {
					defer theirs.Close()
					for in := bufio.NewReader(theirs); ; {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						if host, _, _ := hello.Host(r.Host); host != "a.test" || len(r.Header["X-Secret"]) != 1 || r.Header.Get("X-Secret") != "s3" {
							t.Errorf("%q arrives with %q", r.Host, r.Header)
						}
						mu.Lock()
						arrived++
						if arrived > allowed {
							t.Errorf("%d requests arrive, and %d are allowed", arrived, allowed)
						}
						mu.Unlock()
						if _, err := io.Copy(io.Discard, r.Body); err != nil {
							return
						}
						if _, err := io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
							return
						}
					}
				})
				return ours, nil
			},
		})
		hosts.Wait()
	})
}
