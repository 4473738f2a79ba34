package process

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// event is a notification.
type event struct {
	method string // without "process/"
	seq    uint64
	stream string
	data   []byte
	code   int
}

// command is a started process with what it has notified.
type command struct {
	p      *Process
	closed chan struct{}

	mu     sync.Mutex
	events []event
	news   chan struct{} // closed at the next event
	bad    string
}

// start starts a command. Whatever is left of it is killed with the test.
func start(t *testing.T, spec Spec) *command {
	t.Helper()
	return startWith(t, spec, Options{OutputBytes: 1 << 20})
}

func startWith(t *testing.T, spec Spec, opts Options) *command {
	t.Helper()
	c := &command{closed: make(chan struct{}), news: make(chan struct{})}
	opts.Notify = c.notify
	opts.Closed = func(*Process) { close(c.closed) }
	p, err := Start(spec, opts)
	if err != nil {
		t.Fatalf("start %q: %v", spec.Argv, err)
	}
	c.p = p
	t.Cleanup(func() {
		p.Abandon()
		<-c.closed
	})
	go p.Run()
	return c
}

func (c *command) notify(frames []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			c.bad = "a notification is no whole frame"
			break
		}
		m, err := proto.ParseMessage(f.Body())
		if err != nil || m.Kind != proto.Notification || m.Params.Get("processId").Str() != c.id() {
			c.bad = "bad notification " + string(f.Body())
			break
		}
		e := event{method: m.Method[len("process/"):], stream: m.Params.Get("stream").Str()}
		e.seq, _ = m.Params.Get("seq").Uint64()
		code, _ := m.Params.Get("exitCode").Int64()
		e.code = int(code)
		if data, err := proto.DecodeBase64(m.Params.Get("chunk").Bytes()); err == nil {
			e.data = bytes.Clone(data)
		}
		c.events = append(c.events, e)
	}
	close(c.news)
	c.news = make(chan struct{})
}

func (c *command) id() string {
	if c.p == nil {
		return "p"
	}
	return c.p.ID()
}

// await waits until the events fulfil a condition.
func (c *command) await(t *testing.T, what string, ok func([]event) bool) []event {
	t.Helper()
	timeout := time.After(patience)
	for {
		c.mu.Lock()
		events, news := c.events, c.news
		c.mu.Unlock()
		if ok(events) {
			return events
		}
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("%s did not come; events: %+v", what, events)
		}
	}
}

func (c *command) awaitOutput(t *testing.T, want string) {
	t.Helper()
	c.await(t, "output "+want, func(events []event) bool { return bytes.Contains(output(events, ""), []byte(want)) })
}

func (c *command) awaitExit(t *testing.T) (code int) {
	t.Helper()
	events := c.await(t, "the exit", func(events []event) bool { return at(events, "exited") >= 0 })
	return events[at(events, "exited")].code
}

// wait waits for the end and checks what holds for every command: events are
// numbered without gaps, there is one exit, and closed is the last.
func (c *command) wait(t *testing.T) (events []event, code int) {
	t.Helper()
	select {
	case <-c.closed:
	case <-time.After(patience):
		t.Fatal("the command does not end")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad != "" {
		t.Fatal(c.bad)
	}
	exits := 0
	for i, e := range c.events {
		if e.seq != uint64(i+1) {
			t.Fatalf("event %d has the number %d", i+1, e.seq)
		}
		if (e.method == "closed") != (i == len(c.events)-1) {
			t.Fatalf("closed is not last: %+v", c.events)
		}
		if e.method == "output" && (len(e.data) == 0 || len(e.data) > 8192) {
			t.Fatalf("a chunk of %d bytes", len(e.data))
		}
		if e.method == "exited" {
			exits++
			code = e.code
		}
	}
	if exits != 1 {
		t.Fatalf("%d exits", exits)
	}
	return c.events, code
}

// repeat does something until the command ends. A shell may lose a signal that
// comes while it starts a program.
func (c *command) repeat(do func()) {
	for range patience / (100 * time.Millisecond) {
		do()
		select {
		case <-c.closed:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// output is what was printed to a stream, or to all for "".
func output(events []event, stream string) (data []byte) {
	for _, e := range events {
		if stream == "" || e.stream == stream {
			data = append(data, e.data...)
		}
	}
	return data
}

// at is the index of the first event of a kind, or -1.
func at(events []event, method string) int {
	for i, e := range events {
		if e.method == method {
			return i
		}
	}
	return -1
}

func (c *command) write(t *testing.T, id string, data []byte) {
	t.Helper()
	if status, err := c.p.Write(id, data, nil); err != nil || status != "accepted" {
		t.Fatalf("write %s: %q, %v", id, status, err)
	}
}
