package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
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

func TestFailuresArePausedFor(t *testing.T) {
	calls := 0
	inWorld(t, func(w *world) {
		w.validate = func(context.Context, string, string) error { calls++; return nil }
	}, func(w *world) {
		open := w.connect("open")
		calls = 0
		fail := func() {
			w.send(Frame{Kind: Handshake, StreamID: "bad", Payload: make([]byte, 4000)})
			w.expectReset("bad")
		}
		for range 7 {
			fail()
		}
		w.connect("seventh") // successes do not lower the count
		w.initiate("long", strings.Repeat("x", 4097))
		w.expectReset("long")
		if calls != 1 {
			t.Errorf("%d calls of the registry", calls)
		}
		for range 20 { // not counted, nor looked at
			w.initiate("good", "let me in")
			w.expectReset("good")
		}
		open.say("on")
		if open.hear() != "on" {
			t.Error("an open stream suffers")
		}
		time.Sleep(10*time.Second - 1)
		w.initiate("good", "let me in")
		w.expectReset("good")
		time.Sleep(time.Nanosecond)
		for range 7 { // the count begins anew
			fail()
		}
		w.connect("good")
		w.initiate("not text", "\xff")
		w.expectReset("not text")
		w.initiate("paused again", "let me in")
		w.expectReset("paused again")
		if n := strings.Count(w.log.String(), "too many handshakes failed: none is looked at for a while"); n != 2 {
			t.Errorf("the log tells of %d pauses:\n%s", n, w.log.String())
		}
	})
}

// What harnesses do wrong does not fill the log.
func TestTheLogIsBounded(t *testing.T) {
	var log *bytes.Buffer
	inWorld(t, func(w *world) { log = &w.log }, func(w *world) {
		spoil := func() {
			c := w.connect("spoiled")
			w.send(Frame{Kind: Data, StreamID: c.id, Payload: make([]byte, 100)})
			w.expectReset(c.id)
		}
		for range 50 {
			spoil()
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); n != maxNotices {
			t.Errorf("%d lines for 50 streams:\n%s", n, log)
		}
		time.Sleep(noticesEvery)
		log.Reset()
		spoil()
		synctest.Wait()
		if got := log.String(); !strings.HasPrefix(got, `{"level":"warn","count":30,"message":"more streams were reset or refused"}`+"\n") || strings.Count(got, "\n") != 2 {
			t.Errorf("the next minute begins with\n%s", got)
		}
		for range maxNotices {
			spoil()
		}
		log.Reset()
	})
	if got := log.String(); got != `{"level":"warn","count":1,"message":"more streams were reset or refused"}`+"\n" {
		t.Errorf("at the end the log says %q", got)
	}
}

func TestLimitsOfASocket(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for i := range 128 {
			w.connect(fmt.Sprint(i))
		}
		for range 10 {
			w.initiate("more", "let me in")
			w.expectReset("more")
		}
		w.initiate("5", "let me in") // which is open, and stays so
		w.expectReset("5")
		w.send(Frame{Kind: Reset, StreamID: "5", Reason: "enough"})
		w.connect("more")
	})
	inWorld(t, func(w *world) {
		w.validate = func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }
	}, func(w *world) {
		for i := range 32 {
			w.initiate(fmt.Sprint(i), "let me in")
		}
		w.silent()
		for range 10 {
			w.initiate("more", "let me in")
			w.expectReset("more")
		}
	})
}

// A rendezvous that does not read is not read either, before its ids take much room.
func TestAnswersThatAreNotRead(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		frame := (&Frame{Kind: Data, StreamID: strings.Repeat("x", 200<<10), Payload: []byte("x")}).Append(nil)
		taken := 0
		for range 100 {
			synctest.Wait()
			select {
			case w.r.toExecutor <- frame:
				taken++
			default:
			}
		}
		if taken > cap(w.r.fromExecutor)+10 {
			t.Errorf("%d frames are taken", taken)
		}
		for range taken {
			w.expectReset(strings.Repeat("x", 200<<10))
		}
		w.connect("id")
	})
}

func TestIDsInTheLog(t *testing.T) {
	for id, want := range map[string]string{
		"d9428888-122b-11e1-b85c-61cd3cbb3210":                   "d9428888-122b-11e1-b85c-61cd3cbb3210",
		"\x1b[31m\u009b1m\u202e\n\xff":                           "?[31m?1m???",
		strings.Repeat("é", 10) + "x" + strings.Repeat("é", 100): strings.Repeat("é", 10) + "x" + strings.Repeat("é", 9) + "?…",
	} {
		if got := brief(id); got != want {
			t.Errorf("%q becomes %q", id, got)
		}
	}
}

// Streams that have ended count while their server has not noticed.
func TestStreamsThatAreServedStill(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve = func(ctx context.Context, c proto.Conn) {
			if f, err := c.ReadFrame(); err != nil || string(f.Body()) != "go" {
				<-ctx.Done()
			}
		}
	}, func(w *world) {
		for i := range 256 {
			c := w.connect(fmt.Sprint(i))
			if i == 7 {
				c.say("go")
				w.expectReset("7")
				w.connect("in its place")
			}
			w.send(Frame{Kind: Reset, StreamID: fmt.Sprint(i), Reason: "enough"})
		}
		w.initiate("more", "let me in")
		w.expectReset("more")
	})
}

// A stream that is not read does not hold up another, nor answers to frames.
// A large message that stops half-way ends its stream after a minute. One that goes
// on does not, and what is small is waited for as the reference does.
func TestLargeMessagesThatStop(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.connect("large")
		large := withLength(strings.Repeat("x", 5*growFrom))
		for part := range 5 {
			c.record(large[part*growFrom : (part+1)*growFrom])
			time.Sleep(maxStall - time.Second)
			w.silent()
		}
		c.record(large[5*growFrom:])
		if got := c.hear(); len(got) != 5*growFrom {
			t.Errorf("%d bytes come back", len(got))
		}
		small := w.connect("small")
		small.record(withLength("small")[:6])
		time.Sleep(10 * maxStall)
		w.silent()
		c.record(large[:2*growFrom])
		time.Sleep(maxStall - time.Second)
		w.silent()
		time.Sleep(time.Second)
		w.expectReset("large")
		small.record(withLength("small")[6:])
		if got := small.hear(); got != "small" {
			t.Errorf("%q comes back", got)
		}
	})
}

func TestOneStreamDoesNotHoldUpAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve = func(ctx context.Context, c proto.Conn) {
			f, _ := c.ReadFrame()
			if string(f.Body()) == "bulk" {
				for c.WriteFrames(proto.FrameOf(make([]byte, 50_000))) == nil {
				}
				return
			}
			_ = c.WriteFrames(f)
			<-ctx.Done()
		}
	}, func(w *world) {
		bulk, small := w.connect("bulk"), w.connect("small")
		bulk.say("bulk")
		synctest.Wait()
		small.say("small")
		w.send(Frame{Kind: Data, StreamID: "unknown", Payload: []byte("x")})
		before := 0
		for reset := false; ; before++ {
			f := w.next()
			if f.Kind == Reset && f.StreamID == "unknown" {
				reset = true
			}
			if f.StreamID == "small" {
				if !reset {
					t.Error("the answer to a frame comes after a stream's")
				}
				break
			}
		}
		// What the fake socket holds, what is being written, and one turn.
		if before > 10+1+1+1 {
			t.Errorf("%d frames go before", before)
		}
		w.send(Frame{Kind: Reset, StreamID: "bulk", Reason: "enough"})
	})
}
