package socket

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // RFC 6455 has it so
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/remote/remotetest"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// serve runs a WebSocket server, over pipes, so that it has the bubble's clock.
func serve(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	return remotetest.ServePipes(t, h)
}

func accept(t *testing.T, w http.ResponseWriter, r *http.Request, o *websocket.AcceptOptions) *websocket.Conn {
	ws, err := websocket.Accept(w, r, o)
	if err != nil {
		t.Error(err)
		return nil
	}
	ws.SetReadLimit(-1)
	return ws
}

func TestMessagesBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if ua, ok := r.Header["User-Agent"]; ok || r.Header.Get("X-A") != "b" || r.URL.RawQuery != "q=1" {
				t.Errorf("asked with user agent %q, %v", ua, r.Header)
			}
			ws := accept(t, w, r, nil)
			for {
				kind, text, err := ws.Read(r.Context())
				if err != nil {
					return
				}
				_ = ws.Write(r.Context(), kind, text)
			}
		})
		s, err := Dial(t.Context(), client, "ws://x/?q=1", http.Header{"X-A": {"b"}}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, size := range []int{0, 1, 125, 126, 33, 65535, 65536, 1 << 20} {
			want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
			sent := make(chan error, 1)
			go func() {
				sent <- s.Write(wsframe.AppendMasked(wsframe.AppendMasked(nil, wsframe.Binary, want), wsframe.Text, []byte("é")))
			}()
			got, binary, err := s.Read()
			if err != nil || !binary || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes come back as %d, binary %v, %v", size, len(got), binary, err)
			}
			if got, binary, err := s.Read(); err != nil || binary || string(got) != "é" {
				t.Errorf("a text comes back as %q, %v, %v", got, binary, err)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
	})
}

// What ends a connection within a message ends it for the reader too.
func TestWhatIsNoMessage(t *testing.T) {
	header := func(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0x82, 127}, n) }
	for name, tt := range map[string]struct {
		sent []byte
		want error
	}{
		"cut":                 {header(1 << 20), wsframe.ErrEnd},
		"a frame over 16 MiB": {header(wsframe.MaxPayload + 1), wsframe.ErrSize},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Connection", "Upgrade")
				h.Set("Upgrade", "websocket")
				sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // RFC 6455 has it so
				h.Set("Sec-Websocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
				w.WriteHeader(http.StatusSwitchingProtocols)
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = c.Write(tt.sent)
				_ = c.Close()
			})
			s, err := Dial(t.Context(), client, "ws://x/", nil, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if m, _, err := s.Read(); !errors.Is(err, tt.want) {
				t.Errorf("%s: %d bytes, %v", name, len(m), err)
			}
		})
	}
}

func TestTheLimitOfMessages(t *testing.T) {
	for size, ok := range map[int]bool{1000: true, 1001: false} {
		synctest.Test(t, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				ws := accept(t, w, r, nil)
				_ = ws.Write(r.Context(), websocket.MessageBinary, make([]byte, size))
				_, _, _ = ws.Read(r.Context())
			})
			s, err := Dial(t.Context(), client, "ws://x/", nil, 1000)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got, _, err := s.Read(); (err == nil) != ok || ok && len(got) != size {
				t.Errorf("%d bytes: %d, %v", size, len(got), err)
			}
		})
	}
}

func TestARefusedUpgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Why", "because")
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	_, err := Dial(t.Context(), server.Client(), "ws"+strings.TrimPrefix(server.URL, "http")+"/?sig=secret", nil, 1)
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || refused.Status != http.StatusConflict || refused.Header.Get("X-Why") != "because" {
		t.Errorf("got %v", err)
	}
	url := "ws" + strings.TrimPrefix(server.URL, "http") + "/?sig=secret"
	server.Close()
	if _, err := Dial(t.Context(), http.DefaultClient, url, nil, 1); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestPings(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var pings []string
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				ws := accept(t, w, r, &websocket.AcceptOptions{OnPingReceived: func(_ context.Context, payload []byte) bool {
					pings = append(pings, time.Since(start).String()+string(payload))
					return answers
				}})
				_, _, _ = ws.Read(r.Context())
			})
			s, err := Dial(t.Context(), client, "ws://x/", nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _, _ = s.Read() }()
			ctx, cancel := context.WithTimeout(t.Context(), 110*time.Second)
			defer cancel()
			err = s.Keepalive(ctx)
			took := time.Since(start)
			_ = s.Close()
			synctest.Wait()
			got := strings.Join(pings, " ")
			if answers && (err != nil || got != "30s 1m0s 1m30s") {
				t.Errorf("with answers: %v, pings %s", err, got)
			}
			if !answers && (!errors.Is(err, ErrSilent) || took != 90*time.Second || got != "30s 1m0s") {
				t.Errorf("without: %v after %s, pings %s", err, took, got)
			}
		})
	}
}

func TestAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			ws := accept(t, w, r, nil)
			<-over
			_ = ws.CloseNow()
		})
		defer close(over)
		s, err := Dial(t.Context(), client, "ws://x/", nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := s.Write(wsframe.AppendMasked(nil, wsframe.Binary, make([]byte, 1<<20))); err == nil || time.Since(start) != WriteStall {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		_ = s.Close()
	})
}
