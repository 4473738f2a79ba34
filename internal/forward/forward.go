// Package forward serves the connections of harnesses with another exec-server: each
// has a WebSocket of its own to that, and messages go to and fro as they are. It is
// how a server that only listens is reached through a registry.
package forward

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/socket"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// Options say where connections go.
type Options struct {
	// URL is that of the other server: ws or wss.
	URL string
	// Dial opens a WebSocket; a negative limit is none.
	Dial func(ctx context.Context, url string, header http.Header, limit int64) (*socket.Socket, error)
	Log  zerolog.Logger
}

// Forwarder hands connections on.
type Forwarder struct {
	opts  Options
	conns atomic.Int64 // there are, with those whose harness left before the server answered
	large *semaphore.Weighted
}

// maxConns bounds the connections: twice the streams of a socket, so that those of
// an ended one may last for a while.
const maxConns = 256

// maxLarge is how many connections have a large message of the server's at once.
// Each may take 64 MiB, and half as much again while it grows.
const maxLarge = 16

// New returns a forwarder. It does not connect yet.
func New(opts Options) (*Forwarder, error) {
	u, err := url.Parse(opts.URL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || u.Fragment != "" {
		return nil, errors.New("failed to configure exec-server websocket: forward destination must be a ws:// or wss:// URL")
	}
	return &Forwarder{opts: opts, large: semaphore.NewWeighted(maxLarge)}, nil
}

// Check asks, once, whether somebody listens where connections go, and warns if not.
// It makes no WebSocket: the server may count its clients.
func (f *Forwarder) Check(ctx context.Context) {
	u, err := url.Parse(f.opts.URL)
	if err != nil {
		return // New has seen to it
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
	}
	c, err := (&net.Dialer{Timeout: checkTime}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err == nil {
		_ = c.Close()
	} else if ctx.Err() == nil {
		f.opts.Log.Warn().Err(err).Msg("the server that connections are forwarded to cannot be reached; harnesses are refused until it can")
	}
}

// checkTime bounds Check.
const checkTime = 10 * time.Second

// Serve serves the connection of a harness until it ends, or ctx does. A server that
// cannot be reached ends it.
func (f *Forwarder) Serve(ctx context.Context, c proto.Conn, _ proto.Hello) {
	defer c.Close()
	if f.conns.Add(1) > maxConns {
		f.conns.Add(-1)
		f.opts.Log.Warn().Msg("connection not forwarded: there are too many")
		return
	}
	defer f.conns.Add(-1)
	s, err := f.opts.Dial(ctx, f.opts.URL, nil, -1)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		f.opts.Log.Warn().Err(err).Msg("connection not forwarded: the server does not answer")
		return
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up := make(chan error, 1)
	go func() {
		up <- sendAll(c, s)
		cancel()
		_ = s.Close() // which ends receiveAll
	}()
	err = receiveAll(ctx, s, c, f.large)
	_ = s.Close()
	_ = c.Close() // which ends sendAll
	if err := errors.Join(notable(<-up), notable(err)); err != nil {
		f.opts.Log.Warn().Err(err).Msg("forwarded connection ended")
	}
}

// sendAll sends the harness's messages to the server until one of the two ends.
func sendAll(c proto.Conn, s *socket.Socket) error {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return err
		}
		if err := send(c, s, f.Body()); err != nil {
			return err
		}
	}
}

// stallTime is how long the server may take to read before the harness is watched.
const stallTime = 100 * time.Millisecond

// send writes a message. If that takes long and the harness leaves meanwhile, it
// ends the socket.
func send(c proto.Conn, s *socket.Socket, message []byte) error {
	w, ok := c.(proto.Watcher)
	if !ok {
		return write(s, message)
	}
	written, watched := make(chan struct{}), make(chan struct{})
	t := time.AfterFunc(stallTime, func() {
		defer close(watched)
		if w.AwaitEnd(written) {
			_ = s.Close()
		}
	})
	err := write(s, message)
	close(written)
	if !t.Stop() {
		<-watched
	}
	return err
}

// maxPart is the largest frame that a message is sent in, in bytes. The reference
// takes frames of up to 16 MiB, and messages of many.
const maxPart = 4 << 20

func write(s *socket.Socket, message []byte) error {
	for opcode := byte(wsframe.Text); ; opcode = wsframe.Continuation {
		part := message[:min(len(message), maxPart)]
		message = message[len(part):]
		frame := wsframe.AppendMaskedPart(nil, opcode, part, len(message) == 0)
		if err := s.Write(frame); err != nil || len(message) == 0 {
			return err
		}
	}
}

// broken is the end of a connection that somebody should hear of.
type broken struct{ error }

// notable is err if somebody should hear of it. Connections end all the time, and
// neither side says good-bye.
func notable(err error) error {
	if b, ok := errors.AsType[broken](err); ok {
		return b.error
	}
	return nil
}
