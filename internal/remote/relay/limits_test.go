package relay

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

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
