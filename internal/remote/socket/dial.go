package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/wsframe"
)

// Socket is a WebSocket. One goroutine may read while any number write.
type Socket struct {
	ws     *websocket.Conn
	wire   *wire
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	in     []byte                // the last message
	kind   websocket.MessageType // of it

	failed     atomic.Pointer[error] // what reading ended with
	unanswered atomic.Int32          // pings since the last pong
}

// RefusedError says that the server did not upgrade the connection.
type RefusedError struct {
	Status int
	Header http.Header
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the upgrade to a WebSocket was refused (%d %s)", e.Status, http.StatusText(e.Status))
}

// Dial connects. Messages of more than limit bytes end the socket, and so do frames
// of more than 16 MiB; with a negative limit neither does. An error that
// holds a *RefusedError came from the server.
func Dial(ctx context.Context, c *http.Client, to string, header http.Header, limit int64) (*Socket, error) {
	s := &Socket{}
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header["User-Agent"] = nil // the protocol has none
	hooked := *c
	hooked.Transport = hook{c.Transport, &s.wire, limit < 0}
	pongs := wsframe.NewPongs(true, s.Write)
	ws, resp, err := websocket.Dial(ctx, to, &websocket.DialOptions{
		HTTPClient: &hooked, HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
		OnPongReceived: func(context.Context, []byte) { s.unanswered.Store(0) },
		OnPingReceived: func(_ context.Context, payload []byte) bool { pongs.Answer(payload); return false },
	})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, &RefusedError{resp.StatusCode, resp.Header}
		}
		return nil, hide(err)
	}
	if s.wire == nil {
		_ = ws.CloseNow()
		return nil, errors.New("the HTTP client gave no connection to write to")
	}
	ws.SetReadLimit(limit)
	s.ws = ws
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// hide is an error of HTTP without the libraries' own words, which quote the URL:
// its query may hold a signature.
func hide(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return plain(err)
}

// plain is the innermost error that says something.
func plain(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// hook gets hold of the connection under an upgraded response.
type hook struct {
	next      http.RoundTripper
	wire      **wire
	unlimited bool
}

func (h hook) RoundTrip(r *http.Request) (*http.Response, error) {
	next := h.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if rwc, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		*h.wire = &wire{rwc, nil, make(chan struct{}, 1)}
		if !h.unlimited {
			(*h.wire).meter = wsframe.NewMeter()
		}
		resp.Body = *h.wire
	}
	return resp, nil
}

// wire is a connection whose every write is whole: whoever writes, writes whole
// WebSocket frames.
type wire struct {
	io.ReadWriteCloser
	meter *wsframe.Meter // of what is read; nil if it may be anything
	// turn is full while somebody writes, so that writes are whole. Who waits for it
	// waits for a peer that is slow, and for nobody else.
	turn chan struct{}
}

// Read implements io.Reader.
func (w *wire) Read(p []byte) (int, error) {
	if w.meter != nil {
		return w.meter.Read(w.ReadWriteCloser, p)
	}
	n, err := w.ReadWriteCloser.Read(p)
	if err == io.EOF {
		err = wsframe.ErrEnd
	}
	return n, err
}

// Write implements io.Writer. Close frames of the library are swallowed: the
// protocol ends connections by ending TCP.
func (w *wire) Write(p []byte) (int, error) {
	if wsframe.IsClose(p) {
		return len(p), nil
	}
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	return w.ReadWriteCloser.Write(p)
}

// WriteStall is how long the peer may keep a write waiting.
const WriteStall = 60 * time.Second

// Write sends whole frames (package wsframe). A peer that does not read for WriteStall
// loses the connection.
func (s *Socket) Write(frames []byte) error {
	stalled := time.AfterFunc(WriteStall, func() { _ = s.Close() })
	defer stalled.Stop()
	_, err := s.wire.Write(frames)
	return err
}

// Close ends the connection without a word. It may be called at any time,
// repeatedly.
func (s *Socket) Close() error {
	s.cancel()
	err := s.wire.ReadWriteCloser.Close()
	_ = s.ws.CloseNow() // not earlier: it would wait for a write that does not end
	return err
}

// Err is what reading ended with, nil if it has not.
func (s *Socket) Err() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}
