package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/remote/socket"
)

func TestRefusedUpgrades(t *testing.T) {
	addr := origin(t, nil, nil)
	c, err := newClient(Options{}, env())
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/moved": http.StatusFound, "/refused": http.StatusConflict} {
		_, err := c.Connect(t.Context(), "ws://"+addr+path+"?sig=hunter3", nil, limit)
		if refused, ok := errors.AsType[*socket.RefusedError](err); !ok || refused.Status != status {
			t.Fatalf("%s: %v", path, err)
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("the URL is told: %v", err)
		}
	}
	resp, err := c.HTTP().Get("http://" + addr + "/moved")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("status %d: the redirect was followed", resp.StatusCode)
	}
}

func TestConnectionOutlivesItsContext(t *testing.T) {
	c, err := newClient(Options{}, env())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := c.Connect(ctx, "ws://"+origin(t, nil, nil), nil, limit)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echo(t, conn)
}

func TestNobodyListens(t *testing.T) {
	c, err := newClient(Options{}, env())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Connect(t.Context(), "ws://127.0.0.1:1/?sig=hunter2", nil, limit)
	if err == nil || err.Error() != "dial tcp 127.0.0.1:1: connect: connection refused" {
		t.Errorf("it says %v", err)
	}
}

func TestTargets(t *testing.T) {
	c, err := newClient(Options{}, env())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "http://hunter2", "ws://", "wss://:443", "ws://h:hunter2/", "mailto:hunter2", "ws://[::1", "ws://hunter2@h/", "wss://u:hunter2@h/"} {
		_, err := c.Connect(t.Context(), bad, nil, limit)
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("wss://h:1/p?q#f")
	f.Add("ws://[::1%25en0]/")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := target(text)
		if err == nil && (u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https") {
			t.Errorf("%q gave %v", text, u)
		}
	})
}

// FuzzTunnel has the bytes of a hostile proxy.
func FuzzTunnel(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nmore"))
	f.Add([]byte("HTTP/1.1 407 No\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		c, err := newClient(Options{ProxyURL: "http://proxy.test"}, env())
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := net.Pipe()
		c.dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		go func() {
			_, _ = theirs.Read(make([]byte, 4096))
			_, _ = theirs.Write(answer)
			theirs.Close()
		}()
		if conn, err := c.Connect(t.Context(), "ws://registry.test/", nil, limit); err == nil {
			conn.Close()
		}
		ours.Close()
	})
}

// TestTime has peers that say nothing, at each step of the way.
func TestTime(t *testing.T) {
	for name, proxy := range map[string]string{"directly": "none", "through a proxy": "http://proxy.test", "through an https proxy": "https://proxy.test", "through socks": "socks5://proxy.test"} {
		for _, to := range []string{"ws://registry.test/", "wss://registry.test/", "http://registry.test/", "https://registry.test/"} {
			t.Run(name+" "+to, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, err := newClient(Options{ProxyURL: proxy}, env())
					if err != nil {
						t.Fatal(err)
					}
					c.dial = func(context.Context, string, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						go func() { _, _ = io.Copy(io.Discard, theirs) }()
						return ours, nil
					}
					start := time.Now()
					if strings.HasPrefix(to, "ws") {
						_, err = c.Connect(t.Context(), to, nil, limit)
					} else {
						_, err = c.HTTP().Get(to)
					}
					if err == nil || time.Since(start) != timeout {
						t.Errorf("ended after %v with %v", time.Since(start), err)
					}
					c.HTTP().CloseIdleConnections()
				})
			})
		}
	}
}

func TestCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	addr := origin(t, ca.server, nil)
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		o    Options
		env  []string
		made bool
		ok   bool
	}{
		{name: "system's", made: true},
		{name: "option", o: Options{CAFile: ca.file}, made: true, ok: true},
		{name: "option first", o: Options{CAFile: ca.file}, env: []string{"CODEX_CA_CERTIFICATE", other.file}, made: true, ok: true},
		{name: "codex's variable", env: []string{"CODEX_CA_CERTIFICATE", ca.file, "SSL_CERT_FILE", other.file}, made: true, ok: true},
		{name: "the usual variable", env: []string{"SSL_CERT_FILE", ca.file}, made: true, ok: true},
		{name: "another", env: []string{"SSL_CERT_FILE", other.file}, made: true},
		{name: "missing", o: Options{CAFile: junk + "x"}},
		{name: "junk", env: []string{"SSL_CERT_FILE", junk}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newClient(tt.o, env(tt.env...))
			if (err == nil) != tt.made {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			conn, err := c.Connect(t.Context(), "wss://"+addr, nil, limit)
			if (err == nil) != tt.ok {
				t.Fatal(err)
			}
			resp, herr := c.HTTP().Get("https://" + addr)
			if (herr == nil) != tt.ok {
				t.Fatal(herr)
			}
			if err == nil {
				echo(t, conn)
				conn.Close()
				resp.Body.Close()
			}
		})
	}
}
