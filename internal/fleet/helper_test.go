package fleet

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/gateway"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
)

// fakeLink runs until it is told how to end.
type fakeLink struct {
	plan   Plan
	end    chan error
	status remote.Status
}

func (l *fakeLink) Run(ctx context.Context) error {
	select {
	case err := <-l.end:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (l *fakeLink) Status() remote.Status { return l.status }

// world is what a fleet has around it.
type world struct {
	mu       sync.Mutex // guards all below
	links    map[string]*fakeLink
	refusal  error // of the next links
	hang     bool  // makes the next links wait for their end
	removed  []string
	unremove error
	living   map[string]bool
	served   []string
}

func (w *world) connect(ctx context.Context, p Plan) (Link, error) {
	w.mu.Lock()
	hang, refusal := w.hang, w.refusal
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if refusal != nil {
		return nil, refusal
	}
	l := &fakeLink{plan: p, end: make(chan error, 1), status: remote.Status{State: remote.Connected, Reconnects: 3}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[p.Name] = l
	return l, nil
}

func (w *world) ServeNamed(_ context.Context, _ proto.Conn, name string, hello proto.Hello) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served = append(w.served, name+" "+hello.Peer)
}

func (w *world) Remove(_ context.Context, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unremove != nil {
		return w.unremove
	}
	if !w.living[name] {
		return gateway.ErrUnknown
	}
	delete(w.living, name)
	w.removed = append(w.removed, name)
	return nil
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) link(name string) *fakeLink {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.links[name]
}

// inBubble runs a test with a fleet that keeps its state in a file, on a clock of
// its own.
func inBubble(t *testing.T, f func(t *testing.T, w *world, fl *Fleet)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root", "environments.json")
	synctest.Test(t, func(t *testing.T) {
		w := &world{links: map[string]*fakeLink{}, living: map[string]bool{}}
		fl := open(t, w, path)
		f(t, w, fl)
		if err := fl.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func open(t *testing.T, w *world, path string) *Fleet {
	t.Helper()
	cfg := config.Default()
	cfg.Profiles["other"] = cfg.Profiles["default"]
	return New(Options{Gateway: w, Complete: cfg.Complete, Connect: w.connect, State: path, Log: zerolog.Nop()})
}

// entry is an environment that may be added.
func entry(name string) Entry {
	return Entry{Name: name, Origin: Added, Settings: config.Environment{Remote: "https://r.example", Key: config.Key{KeyEnv: "KEY"}}}
}

func add(t *testing.T, fl *Fleet, e Entry) *Member {
	t.Helper()
	m, err := fl.Add(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return m
}

var errNo = errors.New("no")
