package socket

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/wsframe"
)

// Who pings, and does not read for a while, is waited for as if it had not pinged.
func TestPingsOfWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, busy = 1 << 20, WriteStall - time.Second
		var pongs []string
		over := make(chan error, 1)
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			ws := accept(t, w, r, &websocket.AcceptOptions{OnPongReceived: func(_ context.Context, payload []byte) {
				pongs = append(pongs, string(payload))
			}})
			for range 100 {
				go func() { _ = ws.Ping(r.Context()) }()
			}
			time.Sleep(busy)
			_, text, err := ws.Read(r.Context())
			if err == nil && len(text) != size {
				t.Errorf("a message of %d bytes comes", len(text))
			}
			over <- err
			_, _, _ = ws.Read(r.Context())
		})
		s, err := Dial(t.Context(), client, "ws://x/", nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _, _ = s.Read() }()
		if err := s.Write(wsframe.AppendMasked(nil, wsframe.Binary, make([]byte, size))); err != nil {
			t.Error(err)
		}
		if err := <-over; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(pongs) != 1 && len(pongs) != 2 { // one that was being written, and the last
			t.Errorf("pongs %q", pongs)
		}
		_ = s.Close()
	})
}
