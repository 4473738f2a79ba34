package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// rendezvous is a Socket, and the other end of it.
type rendezvous struct {
	toExecutor   chan []byte
	fromExecutor chan Frame
	closed       chan struct{}
	once         sync.Once
}

func (r *rendezvous) Read() ([]byte, bool, error) {
	select {
	case m := <-r.toExecutor:
		if m == nil {
			return []byte("text"), false, nil
		}
		return m, true, nil
	case <-r.closed:
		return nil, false, io.EOF
	}
}

func (r *rendezvous) Write(frames []byte) error {
	for len(frames) > 0 {
		size, head := int(frames[1]&0x7f), 2
		switch size {
		case 126:
			size, head = int(binary.BigEndian.Uint16(frames[2:])), 4
		case 127:
			size, head = int(binary.BigEndian.Uint64(frames[2:])), 10
		}
		payload := append([]byte(nil), frames[head+4:head+4+size]...)
		wsframe.Key(frames[head : head+4]).Hide(payload)
		frames = frames[head+4+size:]
		f, err := Parse(payload)
		if err != nil {
			panic(err)
		}
		select {
		case r.fromExecutor <- f:
		case <-r.closed:
			return net.ErrClosed
		}
	}
	return nil
}

func (r *rendezvous) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// world is an executor with its rendezvous. Its streams echo, each message with the
// word of the stream's server before it.
type world struct {
	t        *testing.T
	r        *rendezvous
	key      *noise.KeyPair
	harness  *noise.KeyPair
	validate func(ctx context.Context, id, authorization string) error
	serve    func(ctx context.Context, c proto.Conn)
	open     int
	log      bytes.Buffer
	done     chan error
}

// inWorld runs a test in a bubble. set may change the world before it begins.
func inWorld(t *testing.T, set func(*world), f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, key: keys(t), harness: keys(t), done: make(chan error, 1), serve: echo}
		w.validate = func(context.Context, string, string) error { return nil }
		w.r = &rendezvous{toExecutor: make(chan []byte), fromExecutor: make(chan Frame, 10), closed: make(chan struct{})}
		if set != nil {
			set(w)
		}
		b := &budget{shared: semaphore.NewWeighted(maxHeld)}
		go func() {
			w.done <- serve(context.Background(), w.r, Options{
				Key: w.key, EnvironmentID: "env", RegistrationID: "reg", Log: zerolog.New(zerolog.SyncWriter(&w.log)).Level(zerolog.InfoLevel),
				Validate: func(ctx context.Context, id string, harness noise.PublicKey, authorization string) error {
					return w.validate(ctx, id, authorization)
				},
				Serve: func(ctx context.Context, c proto.Conn) { w.serve(ctx, c) },
				Count: func(n int) { w.open = n },
			}, b)
		}()
		f(w)
		_ = w.r.Close()
		if err := <-w.done; err != io.EOF {
			t.Errorf("the socket ended with %v", err)
		}
		if w.open != 0 {
			t.Errorf("%d streams are open still", w.open)
		}
		if b.held != 0 || !b.shared.TryAcquire(maxHeld) {
			t.Errorf("%d bytes of the budget are held still", b.held)
		}
	})
}

func keys(t *testing.T) *noise.KeyPair {
	t.Helper()
	k, err := noise.GenerateKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func echo(_ context.Context, c proto.Conn) {
	for {
		f, err := c.ReadFrame()
		if err != nil || c.WriteFrames(f) != nil {
			return
		}
	}
}

func (w *world) send(f Frame) { w.r.toExecutor <- f.Append(nil) }

func (w *world) next() Frame {
	w.t.Helper()
	synctest.Wait()
	select {
	case f := <-w.r.fromExecutor:
		return f
	default:
		w.t.Fatal("the executor says nothing")
		return Frame{}
	}
}

func (w *world) silent() {
	w.t.Helper()
	synctest.Wait()
	select {
	case f := <-w.r.fromExecutor:
		w.t.Errorf("the executor says %v", f)
	default:
	}
}

func (w *world) expectReset(id string) {
	w.t.Helper()
	if f := w.next(); f.Kind != Reset || f.StreamID != id || f.Reason != "noise_relay_protocol_error" {
		w.t.Errorf("got %v and no reset of %s", f, id)
	}
}

// initiate sends a first message.
func (w *world) initiate(id, authorization string) *noise.Initiator {
	w.t.Helper()
	i, message, err := noise.Initiate(w.harness, w.key.Public(), noise.Prologue("env", "reg", id), []byte(authorization))
	if err != nil {
		w.t.Fatal(err)
	}
	w.send(Frame{Kind: Resume, StreamID: id})
	w.send(Frame{Kind: Handshake, StreamID: id, Payload: message})
	return i
}

// client is the harness's end of a stream.
type client struct {
	w       *world
	id      string
	channel *noise.Channel
	sent    uint32
	seen    uint32
	text    []byte
}

func (w *world) connect(id string) *client {
	w.t.Helper()
	i := w.initiate(id, "let me in")
	f := w.next()
	if f.Kind != Handshake || f.StreamID != id {
		w.t.Fatalf("got %v in place of a handshake for %s", f, id)
	}
	payload, c, err := i.Finish(f.Payload)
	if err != nil || len(payload) > 0 {
		w.t.Fatalf("the handshake says %q, %v", payload, err)
	}
	return &client{w: w, id: id, channel: c}
}

// seal makes the next record.
func (c *client) seal(text []byte) Frame {
	c.w.t.Helper()
	record, err := c.channel.Seal(nil, text)
	if err != nil {
		c.w.t.Fatal(err)
	}
	c.sent++
	return Frame{Kind: Data, StreamID: c.id, Seq: c.sent - 1, Payload: record}
}

func (c *client) record(text []byte) { c.w.send(c.seal(text)) }

func withLength(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func (c *client) say(text string) { c.record(withLength(text)) }

// hear returns the next message.
func (c *client) hear() string {
	c.w.t.Helper()
	for {
		if len(c.text) >= 4 {
			if n := int(binary.BigEndian.Uint32(c.text)); len(c.text) >= 4+n {
				text := string(c.text[4 : 4+n])
				c.text = c.text[4+n:]
				return text
			}
		}
		f := c.w.next()
		if f.Kind != Data || f.StreamID != c.id || f.Seq != c.seen {
			c.w.t.Fatalf("got %v in place of record %d of %s", f, c.seen, c.id)
		}
		c.seen++
		text, err := c.channel.Open(nil, f.Payload)
		if err != nil {
			c.w.t.Fatal(err)
		}
		if len(text) > 60<<10 {
			c.w.t.Errorf("a record of %d bytes", len(text))
		}
		c.text = append(c.text, text...)
	}
}
