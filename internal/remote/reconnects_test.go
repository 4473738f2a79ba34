package remote_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// use is what this process takes, with the peer and the agent in it.
type use struct {
	goroutines, files int
	heap              uint64
}

func measure(t *testing.T) use {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// atMost tells whether no more is taken than before, but for what comes and goes.
func (u use) atMost(before use) bool {
	return u.goroutines <= before.goroutines+5 && u.files <= before.files+3 && u.heap <= before.heap+2<<20
}

// settle measures until no more is taken than before, or it is clear that it is.
func settle(t *testing.T, before use) use {
	t.Helper()
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if now := measure(t); now.atMost(before) || time.Since(start) > 10*time.Second {
			return now
		}
	}
}

// Nothing is left of a thousand sockets that were lost, and a session and its
// process outlive them. It must not run in parallel with others: all are counted.
func TestAThousandReconnects(t *testing.T) {
	r := newRig(t)
	l := r.start(r.options("e", remote.Noise), func(l *remote.Link) {
		l.SetPause(func(int) time.Duration { return 0 })
	})
	h := r.open("e", "")
	session := h.session
	id := h.start("echo before; sleep 1000")
	const total, every = 1000, 10
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var before use
	for n := 1; n <= total; n++ {
		how := []remotetest.Cut{remotetest.CutClose, remotetest.CutAbort}[n%2]
		if !r.peer.Cut("e", how) {
			t.Fatalf("there is no socket to cut before number %d", n)
		}
		if err := r.peer.AwaitSocket(ctx, "e", n+1); err != nil {
			t.Fatalf("socket %d: %v", n, err)
		}
		if n%every != 0 {
			continue
		}
		await(t, h.c.Done(), "the end of the connection")
		var err error
		if h, err = r.join("e", session); err != nil || h.session != session {
			t.Fatalf("after %d sockets session %s is not resumed: %v", n, session, err)
		}
		v, err := h.call("process/read", map[string]any{"processId": id, "waitMs": 30000})
		if text, _ := base64.StdEncoding.DecodeString(v.Get("chunks").At(0).Get("chunk").Str()); err != nil || string(text) != "before\n" {
			t.Fatalf("after %d sockets the process has printed %q, %v", n, text, err)
		}
		r.peer.ForgetCalls() // they are kept for tests
		if n == total/10 {
			before = measure(t)
		}
	}
	after := settle(t, before)
	t.Logf("after 100 reconnects %+v, after %d %+v", before, total, after)
	if !after.atMost(before) {
		t.Errorf("something is left: after 100 reconnects %+v, after %d %+v", before, total, after)
	}
	_ = h.c.Close()
	await(t, h.c.Done(), "the end of a connection that was closed")
	if s := l.Status(); s.State != remote.Connected || s.Reconnects != total {
		t.Errorf("the status is %+v", s)
	}
}

// What the counts above are worth: what is leaked on purpose is seen.
func TestLeaksAreCounted(t *testing.T) {
	before := measure(t)
	over := make(chan struct{})
	defer close(over)
	var files []*os.File
	var held [][]byte
	for range 900 {
		go func() { <-over }()
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		files, held = append(files, f), append(held, make([]byte, 4<<10))
	}
	after := measure(t)
	for _, f := range files {
		_ = f.Close()
	}
	for name, u := range map[string]use{
		"goroutines": {after.goroutines, before.files, before.heap},
		"files":      {before.goroutines, after.files, before.heap},
		"memory":     {before.goroutines, before.files, after.heap},
	} {
		if u.atMost(before) {
			t.Errorf("%s are not counted: %s", name, fmt.Sprint(before, after))
		}
	}
	runtime.KeepAlive(held)
}
