package remotetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/relay"
)

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, p *Peer, id string) proto.Conn {
	t.Helper()
	c, err := p.Open(soon(t), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echo sends a message and expects it back.
func echo(t *testing.T, c proto.Conn, text string) {
	t.Helper()
	if err := c.WriteFrames(proto.FrameOf([]byte(text))); err != nil {
		t.Fatal(err)
	}
	f, err := c.ReadFrame()
	if err != nil || string(f.Body()) != text {
		t.Fatalf("%.20q (%d bytes) comes back as %.20q, %v", text, len(text), f, err)
	}
}

func TestStreamsOfManyEnvironments(t *testing.T) {
	p := New(t, Options{})
	var conns []proto.Conn
	for i := range 3 {
		id := fmt.Sprint("env-", i)
		newExecutor(t, p, id, false).odd()
		conns = append(conns, open(t, p, id), open(t, p, id))
	}
	for range 2 {
		for i, c := range conns {
			echo(t, c, strings.Repeat(fmt.Sprint("of ", i, " "), 50000))
		}
	}
	calls := p.Calls("env-1")
	var kinds []string
	for _, c := range calls {
		kinds = append(kinds, fmt.Sprint(c.Kind, " ", c.Status))
	}
	if got := strings.Join(kinds, ", "); got != "register 200, upgrade 101, validate 200, validate 200" {
		t.Errorf("calls: %s", got)
	}
	if got := calls[0].Header.Get("authorization"); got != "Bearer key-of-env-1" {
		t.Errorf("it authorizes itself with %q", got)
	}
}

func TestAPeerRepairsWhatAHarnessRepairs(t *testing.T) {
	p := New(t, Options{})
	newExecutor(t, p, "e", false)
	p.Set("e", func(f *Faults) { f.Chunk, f.FromExecutor = 7, Way{Duplicate: 3, Reorder: 4} })
	c := open(t, p, "e")
	for i := range 20 {
		echo(t, c, strings.Repeat(fmt.Sprint(i), 30))
	}
}

func TestFaultsOnTheWay(t *testing.T) {
	for name, change := range map[string]func(*Faults){
		"tampered to":     func(f *Faults) { f.ToExecutor.Tamper = 1 },
		"tampered from":   func(f *Faults) { f.FromExecutor.Tamper = 1 },
		"reordered to":    func(f *Faults) { f.Chunk, f.ToExecutor.Reorder = 3, 2 }, // this executor puts nothing in order
		"handshake to":    func(f *Faults) { f.ToExecutor.TamperHandshake = true },
		"handshake from":  func(f *Faults) { f.FromExecutor.TamperHandshake = true },
		"executor's key":  func(f *Faults) { f.WrongExecutorKey = true },
		"harness's key":   func(f *Faults) { f.WrongHarnessKey = true },
		"invalid":         func(f *Faults) { f.Invalid = true },
		"validation 401":  func(f *Faults) { f.Validate = Plan{Status: 401} },
		"validation 500":  func(f *Faults) { f.Validate = Plan{Status: 500} },
		"validation ends": func(f *Faults) { f.Validate = Plan{Abort: true} },
	} {
		t.Run(name, func(t *testing.T) {
			p := New(t, Options{})
			newExecutor(t, p, "e", false)
			p.Set("e", change)
			c, err := p.Open(soon(t), "e")
			if err == nil {
				_ = c.WriteFrames(proto.FrameOf([]byte("hello, world")))
				_, err = c.ReadFrame()
				_ = c.Close()
			}
			if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrRejected) != (name == "validation 401") {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

func TestDropped(t *testing.T) {
	p := New(t, Options{})
	newExecutor(t, p, "e", false)
	p.Set("e", func(f *Faults) { f.ToExecutor.Drop = 2 })
	c := open(t, p, "e")
	echo(t, c, "one")
	_ = c.WriteFrames(proto.FrameOf([]byte("two")))
	_ = c.WriteFrames(proto.FrameOf([]byte("three")))
	if _, err := c.ReadFrame(); !errors.Is(err, ErrReset) { // this executor does not wait
		t.Errorf("it ends with %v", err)
	}
}

func TestPlans(t *testing.T) {
	p := New(t, Options{})
	x := newExecutor(t, p, "e", false)
	post := func() int { return x.post("register", "", nil, &struct{}{}) }
	p.Set("e", func(f *Faults) {
		f.Register = Plan{Status: 429, After: 1, Count: 2, Header: http.Header{"retry-after": {"3"}}}
	})
	for i, want := range []int{400, 429, 429, 400} {
		if got := post(); got != want {
			t.Errorf("call %d is answered with %d, not %d", i, got, want)
		}
	}
	p.Set("", func(f *Faults) { f.Register = Plan{Status: 500} }) // "e" has its own
	if got := post(); got != 400 {
		t.Errorf("the faults of others: %d", got)
	}
	p.Set("e", func(f *Faults) { f.Register = Plan{Abort: true} })
	if got := post(); got != 0 {
		t.Errorf("no answer: %d", got)
	}
	p.Set("e", func(f *Faults) { f.Register = Plan{Delay: time.Millisecond} })
	if got := post(); got != 400 {
		t.Errorf("a late answer: %d", got)
	}
	p.Set("e", func(f *Faults) { f.Register = Plan{Hang: true} })
	time.AfterFunc(50*time.Millisecond, p.Close)
	if got := post(); got != 0 {
		t.Errorf("no answer for ever: %d", got)
	}
}

func TestCuts(t *testing.T) {
	for _, how := range []Cut{CutClose, CutEnd, CutAbort, CutFreeze} {
		p := New(t, Options{})
		x := newExecutor(t, p, "e", false)
		c := open(t, p, "e")
		echo(t, c, "alive")
		if !p.Cut("e", how) {
			t.Fatal("there is no socket")
		}
		if how == CutFreeze {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if err := x.ws.Ping(ctx); err == nil {
				t.Error("a frozen peer answers a ping")
			}
			cancel()
			p.Close()
		}
		if _, err := c.ReadFrame(); !errors.Is(err, ErrLost) {
			t.Errorf("%s: the connection ends with %v", how, err)
		}
		<-x.ended
		x.mu.Lock()
		err := x.err
		x.mu.Unlock()
		if closed := strings.Contains(err.Error(), "StatusGoingAway"); closed != (how == CutClose) {
			t.Errorf("%s: the socket ends with %v", how, err)
		}
	}
}

func TestBareFrames(t *testing.T) {
	seen := make(chan relay.Kind, 10)
	p := New(t, Options{OnFrame: func(_ string, _ []byte, f relay.Frame) { seen <- f.Kind }})
	x := newExecutor(t, p, "e", false)
	st, err := p.Claim(soon(t), "e", "my stream")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Claim(soon(t), "e", "my stream"); !errors.Is(err, ErrBusy) {
		t.Errorf("a stream is claimed twice: %v", err)
	}
	if err := p.SendBytes("e", []byte("rubbish")); err != nil {
		t.Fatal(err)
	}
	if f := <-x.resets; f.Reason != "rubbish" {
		t.Errorf("the executor gets %q", f.Reason)
	}
	st.Authorization = "made up"
	if _, err := st.Open(soon(t)); !errors.Is(err, ErrReset) {
		t.Errorf("an authorization that was made up: %v", err)
	}
	if kind := <-seen; kind != relay.Reset {
		t.Errorf("the executor sent %d", kind)
	}
	st.Close()
	if f := <-x.resets; f.StreamID != "my stream" {
		t.Errorf("the executor is not told of the end: %v", f)
	}
	if err := x.ws.Write(t.Context(), 1, []byte("text")); err != nil {
		t.Fatal(err)
	}
	x.send(relay.Frame{Kind: relay.Resume, StreamID: "s"})
	for len(p.Odd()) < 2 {
		time.Sleep(time.Millisecond)
	}
}

func TestDirect(t *testing.T) {
	p := New(t, Options{})
	newExecutor(t, p, "e", true).odd()
	c := open(t, p, "e")
	echo(t, c, strings.Repeat("long ", 100000))
	if _, err := p.Open(soon(t), "e"); !errors.Is(err, ErrBusy) {
		t.Errorf("a second connection: %v", err)
	}
	_ = c.Close()
	if _, err := c.ReadFrame(); !errors.Is(err, ErrLost) {
		t.Errorf("after its end: %v", err)
	}
	newExecutor(t, p, "e", true)
	echo(t, open(t, p, "e"), "again")
}

func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		p := New(t, Options{})
		x := newExecutor(t, p, "e", false)
		c := open(t, p, "e")
		echo(t, c, "x")
		p.Set("e", func(f *Faults) { f.ToExecutor.Reorder = 1 })
		_ = c.WriteFrames(proto.FrameOf([]byte("kept back")))
		p.Cut("e", CutFreeze)
		p.Close()
		<-x.ended
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines were there, now there are these:\n%s", before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
