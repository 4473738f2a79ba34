package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestStreamsCarryMessages(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a, b := w.connect("a"), w.connect("b")
		for i := range 3 {
			a.say(fmt.Sprint("to a ", i))
			b.say(fmt.Sprint("to b ", i))
			for _, c := range []*client{a, b} {
				f := w.next()
				if f.StreamID == a.id {
					c = a
				} else {
					c = b
				}
				text, err := c.channel.Open(nil, f.Payload)
				if want := fmt.Sprint("to ", c.id, " ", i); err != nil || string(text[4:]) != want {
					t.Errorf("got %q, %v; want %q", text, err, want)
				}
			}
		}
		if w.open != 2 {
			t.Errorf("%d streams are open", w.open)
		}
	})
}

// Records and messages have borders of their own.
func TestMessagesInPieces(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.connect("a")
		large := strings.Repeat("0123456789", 30_000)
		all := append(append(withLength("one"), withLength(large)...), withLength("three")...)
		c.record(nil)
		for _, n := range []int{1, 2, 3, 1, 61440, 61440, 61440, 61440, 61440} {
			n = min(n, len(all))
			c.record(all[:n])
			all = all[n:]
		}
		for i, want := range []string{"one", large, "three"} {
			if got := c.hear(); got != want {
				t.Errorf("message %d has %d bytes, not %d", i, len(got), len(want))
			}
		}
	})
}

func TestRecordsArePutInOrder(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.connect("a")
		var frames []Frame
		for i := range 65 {
			frames = append(frames, c.seal(withLength(fmt.Sprint(i))))
		}
		for i := len(frames) - 1; i >= 0; i-- {
			w.send(frames[i])
			w.send(frames[i]) // a duplicate, too early or too late
		}
		for i := range 65 {
			if got := c.hear(); got != fmt.Sprint(i) {
				t.Errorf("message %d is %s", i, got)
			}
		}
		// One that never comes is waited for.
		c.seal(withLength("lost"))
		c.say("after")
		time.Sleep(time.Hour)
		w.silent()
	})
}

func TestWhatEndsAStream(t *testing.T) {
	for name, f := range map[string]func(*client){
		"65 ahead":             func(c *client) { c.sent = 65; c.say("x") },
		"changed":              func(c *client) { f := c.seal([]byte("x")); f.Payload[0] ^= 1; c.w.send(f) },
		"larger than a record": func(c *client) { c.record(make([]byte, 61441)) },
		"length 0":             func(c *client) { c.record(make([]byte, 4)) },
		"length over 64 MiB":   func(c *client) { c.record(binary.BigEndian.AppendUint32(nil, 64<<20+1)) },
		"length of all ones":   func(c *client) { c.record(binary.BigEndian.AppendUint32(nil, math.MaxUint32)) },
		"more than 1 MiB early": func(c *client) {
			first := c.seal([]byte("x"))
			for range 18 {
				c.record(make([]byte, 60000))
			}
			c.w.expectReset("a")
			c.w.send(first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				other, c := w.connect("b"), w.connect("a")
				f(c)
				w.expectReset("a")
				other.say("still there")
				if got := other.hear(); got != "still there" {
					t.Error(got)
				}
				w.connect("a").say("again") // the id is free
			})
		})
	}
}

func TestAsManyMessagesWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve = func(ctx context.Context, c proto.Conn) { <-ctx.Done() }
	}, func(w *world) {
		c := w.connect("a")
		for range 128 {
			c.say(strings.Repeat("x", 10_000))
		}
		w.silent()
		c.say("x")
		w.expectReset("a")
	})
}

func TestTheEndOfAStream(t *testing.T) {
	ended := make(chan string, 10)
	inWorld(t, func(w *world) {
		w.serve = func(_ context.Context, c proto.Conn) {
			var said []string
			for {
				f, err := c.ReadFrame()
				if err != nil {
					ended <- strings.Join(said, " ") + " " + err.Error()
					return
				}
				said = append(said, string(f.Body()))
				if string(f.Body()) == "bye" {
					_ = c.WriteFrames(append(proto.FrameOf([]byte("good")), proto.FrameOf([]byte("bye"))...))
					return
				}
			}
		}
	}, func(w *world) {
		a := w.connect("a")
		a.say("1")
		a.say("2")
		w.send(Frame{Kind: Reset, StreamID: "a", Reason: "anything"})
		if got := <-ended; got != "1 2 EOF" {
			t.Errorf("a reset by the harness: %s", got)
		}
		w.silent()
		w.send(Frame{Kind: Reset, StreamID: "a", Reason: "once more"})
		w.silent()
		a.say("nobody listens")
		w.expectReset("a")
		b := w.connect("b")
		b.say("bye")
		if got := b.hear() + b.hear(); got != "goodbye" {
			t.Error(got)
		}
		w.expectReset("b") // behind what was said
		w.connect("c")     // ends with the socket
	})
	if got := <-ended; got != " EOF" {
		t.Errorf("the end of the socket: %s", got)
	}
}

func TestAMessageThatIsTooLargeToSend(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve = func(_ context.Context, c proto.Conn) {
			if err := c.WriteFrames(proto.FrameOf(make([]byte, proto.MaxRequest+1))); err == nil {
				t.Error("it was sent")
			}
		}
	}, func(w *world) {
		w.connect("a")
		w.expectReset("a")
	})
}

func TestFramesThatMeanNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.connect("a")
		w.r.toExecutor <- nil // a text message
		w.r.toExecutor <- []byte("garbage")
		for _, k := range []Kind{Ack, Resume, Heartbeat} {
			w.send(Frame{Kind: k, StreamID: "a"})
			w.send(Frame{Kind: k, StreamID: "x"})
		}
		w.silent()
		c.say("there")
		if c.hear() != "there" {
			t.Error("the stream has suffered")
		}
	})
}

func TestTheRegistryDecides(t *testing.T) {
	inWorld(t, func(w *world) {
		w.validate = func(ctx context.Context, id, authorization string) error {
			if authorization != "let me in" {
				t.Errorf("the authorization is %q", authorization)
			}
			switch id {
			case "rejected":
				return fmt.Errorf("wrapped: %w", ErrRejected)
			case "slow":
				<-ctx.Done()
				return ctx.Err()
			}
			return errors.New("no")
		}
	}, func(w *world) {
		i := w.initiate("rejected", "let me in")
		f := w.next()
		if payload, _, err := i.Finish(f.Payload); err != nil || string(payload) != "codex-registry-authentication-rejected/v1" {
			t.Errorf("got %q, %v", payload, err)
		}
		w.send(Frame{Kind: Data, StreamID: "rejected", Payload: []byte("x")})
		w.expectReset("rejected") // it is not open
		w.initiate("no", "let me in")
		w.expectReset("no")
		for name, again := range map[string]Frame{
			"data":      {Kind: Data, StreamID: "slow", Payload: []byte("x")},
			"handshake": {Kind: Handshake, StreamID: "slow", Payload: []byte("x")},
		} {
			w.initiate("slow", "let me in")
			w.silent()
			w.send(again)
			t.Log(name)
			w.expectReset("slow")
		}
		w.initiate("slow", "let me in")
		w.send(Frame{Kind: Reset, StreamID: "slow", Reason: "never mind"})
		w.silent()
	})
}

// What harnesses do wrong does not fill the log.
// A rendezvous that does not read is not read either, before its ids take much room.
// Streams that have ended count while their server has not noticed.
// A stream that is not read does not hold up another, nor answers to frames.
// A large message that stops half-way ends its stream after a minute. One that goes
// on does not, and what is small is waited for as the reference does.
