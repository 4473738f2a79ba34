package forward

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // what WebSockets are upgraded with
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

func TestEveryConnectionHasAWebSocketOfItsOwn(t *testing.T) {
	n := make(chan string, 2)
	n <- `{"id":0,"result":"first"}`
	n <- `{"id":0,"result":"second"}`
	h := forwarded(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		_ = ws.Write(ctx, websocket.MessageText, []byte(<-n))
		echo(ctx, ws)
	}))
	a := h.open()
	h.expect(a, `{"id":0,"result":"first"}`)
	b := h.open()
	h.expect(b, `{"id":0,"result":"second"}`)
	for _, m := range []string{`{"id":1,"method":"a"}`, `{"method":"notice","params":{}}`, `{"id":"x","result":null}`} {
		h.send(a, m)
		h.expect(a, m)
	}
	h.send(b, `{"id":2,"method":"b"}`)
	h.expect(b, `{"id":2,"method":"b"}`)
}

func TestAServerThatIsNotThereResetsTheStreamOnly(t *testing.T) {
	h := forwarded(t, deaf(t))
	for range 2 { // the forwarder stays
		if _, err := h.open().ReadFrame(); !errors.Is(err, remotetest.ErrReset) {
			t.Errorf("the stream ends with %v; expected %v", err, remotetest.ErrReset)
		}
	}
	if n := h.peer.Sockets("env"); n != 1 {
		t.Errorf("there have been %d sockets; expected 1", n)
	}
	h.end()
	if got := strings.Count(h.log.String(), "connection refused"); got != 2 {
		t.Errorf("the log says so %d times; expected 2: %s", got, h.log)
	}
}

func TestTheServersEndIsTheStreams(t *testing.T) {
	h := forwarded(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		_, _, _ = ws.Read(ctx)
		_ = ws.Write(ctx, websocket.MessageText, []byte(`{"id":1,"result":{}}`))
		_ = ws.Close(websocket.StatusGoingAway, "")
	}))
	c := h.open()
	h.send(c, `{"id":1,"method":"x"}`)
	h.expect(c, `{"id":1,"result":{}}`)
	if _, err := c.ReadFrame(); !errors.Is(err, remotetest.ErrReset) {
		t.Errorf("the stream ends with %v; expected %v", err, remotetest.ErrReset)
	}
}

func TestTheHarnesssEndIsTheWebSockets(t *testing.T) {
	got := make(chan string, 4)
	h := forwarded(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		for {
			_, m, err := ws.Read(ctx)
			if err != nil {
				close(got)
				return
			}
			got <- string(m)
		}
	}))
	c := h.open()
	h.send(c, `{"method":"last words"}`)
	_ = c.Close()
	if m := <-got; m != `{"method":"last words"}` {
		t.Errorf("the server is sent %q", m)
	}
	if m, ok := <-got; ok {
		t.Errorf("the server is sent %q after the harness has left", m)
	}
}

func TestAHarnessThatLeavesAServerThatDoesNotReadIsNoticed(t *testing.T) {
	accepted, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var conns atomic.Int64
	h := forwarded(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		if conns.Add(1) > 1 {
			echo(ctx, ws)
			return
		}
		close(accepted)
		<-leave
		for { // what was under way
			if _, _, err := ws.Read(ctx); err != nil {
				close(left)
				return
			}
		}
	}))
	c := h.open()
	select {
	case <-accepted:
	case <-h.ctx.Done():
		t.Fatal("the server is not connected to")
	}
	big := `{"method":"` + strings.Repeat("x", 24<<20) + `"}` // more than fits between the two
	h.send(c, big)
	_ = c.Close()
	other := h.open()
	h.send(other, `{"method":"x"}`)
	h.expect(other, `{"method":"x"}`)
	close(leave)
	select {
	case <-left:
	case <-h.ctx.Done():
		t.Error("the server's connection has not ended")
	}
}

// The reference's forwarder leaves it to the server to judge messages.
func TestWhatIsNoMessageIsForwardedAsWell(t *testing.T) {
	h := forwarded(t, serve(t, echo))
	c := h.open()
	for _, m := range []string{`[]`, `nonsense`, `{"neither":1}`} {
		h.send(c, m)
		h.expect(c, m)
	}
}

func TestAnAnswerTooLargeFailsItsRequest(t *testing.T) {
	huge := strings.Repeat("x", proto.MaxRequest)
	h := forwarded(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		for _, m := range []string{`{"id":7,"result":"` + huge + `"}`, `{"result":"` + huge + `","id":"seven"}`, `{"id":8,"result":0}`, `{"method":"` + huge + `"}`} {
			if err := ws.Write(ctx, websocket.MessageText, []byte(m)); err != nil {
				t.Error(err)
				return
			}
		}
		_, _, _ = ws.Read(ctx)
	}))
	c := h.open()
	why := `{"error":{"code":-32603,"message":"the answer has 67108884 bytes, and messages of at most 67108864 can be relayed"},"id":7}`
	h.expect(c, why)
	h.expect(c, strings.Replace(strings.Replace(why, `"id":7`, `"id":"seven"`, 1), "67108884", "67108890", 1))
	h.expect(c, `{"id":8,"result":0}`)
	if _, err := c.ReadFrame(); !errors.Is(err, remotetest.ErrReset) {
		t.Errorf("the stream ends with %v; expected %v", err, remotetest.ErrReset)
	}
	h.end()
	if want := "the server sends a message of 67108877 bytes"; !strings.Contains(h.log.String(), want) {
		t.Errorf("the log does not say %q: %s", want, h.log)
	}
}

// The reference's listener takes frames of up to 16 MiB, and larger messages in
// several.
func TestLargeMessagesAreSentInParts(t *testing.T) {
	frames := make(chan [2]int, 16) // the first byte, and the size
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		defer close(frames)
		for {
			first, size, err := skipFrame(buf.Reader)
			if err != nil {
				return
			}
			frames <- [2]int{first, size}
		}
	}))
	t.Cleanup(s.Close)
	h := forwarded(t, "ws"+strings.TrimPrefix(s.URL, "http"))
	c := h.open()
	h.send(c, `{"method":"`+strings.Repeat("x", 2*maxPart-13+5)+`"}`)
	h.send(c, `{"method":"x"}`)
	for _, want := range [][2]int{{0x01, maxPart}, {0x00, maxPart}, {0x80, 5}, {0x81, 14}} {
		if got := <-frames; got != want {
			t.Errorf("a frame begins with %#x and has %d bytes; expected %#x, %d", got[0], got[1], want[0], want[1])
		}
	}
}

// accept upgrades a connection, and gives it as it is.
func accept(w http.ResponseWriter, r *http.Request) (net.Conn, *bufio.ReadWriter, error) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
	return conn, buf, err
}

// skipFrame reads a frame of a client.
func skipFrame(r *bufio.Reader) (first, size int, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, err
	}
	size = int(head[1] & 0x7f)
	if more := map[int]int{126: 2, 127: 8}[size]; more > 0 {
		var long [8]byte
		if _, err := io.ReadFull(r, long[8-more:]); err != nil {
			return 0, 0, err
		}
		size = int(binary.BigEndian.Uint64(long[:]))
	}
	_, err = r.Discard(4 + size)
	return int(head[0]), size, err
}

func TestURLsThatNobodyCanConnectTo(t *testing.T) {
	for _, url := range []string{"", "nonsense", "http://127.0.0.1:1", "ws://", "ws://h/#fragment", "ws://user:secret@h:x"} {
		if _, err := New(Options{URL: url}); err == nil {
			t.Errorf("%q is taken", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows a password: %s", err)
		}
	}
	for _, url := range []string{"ws://127.0.0.1:1", "wss://host/path?query", "ws://[::1]:1"} {
		if _, err := New(Options{URL: url}); err != nil {
			t.Errorf("%q: %s", url, err)
		}
	}
}
