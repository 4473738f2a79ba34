package gateway

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// memory is a runtime whose sandboxes are agents in this process. It counts what
// it is asked for.
type memory struct {
	mu      sync.Mutex // guards all below
	created []string
	removed []string
	err     error         // of Create
	create  chan struct{} // what Create waits for; nil is nothing
	remove  chan struct{} // what Remove waits for; nil is nothing
	boxes   map[string]*box
}

func (m *memory) Create(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	m.mu.Lock()
	m.created = append(m.created, spec.Name)
	hold, err := m.create, m.err
	m.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return m.add(spec), nil
}

func (m *memory) add(spec runtime.Spec) *box {
	b := &box{m: m, spec: spec, done: make(chan struct{})}
	b.end = sync.OnceFunc(func() { close(b.done) })
	b.server = agent.New(agent.Options{Cwd: "/", Home: "/", LastSession: func(string) { b.end() }})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes == nil {
		m.boxes = make(map[string]*box)
	}
	m.boxes[spec.Name] = b
	return b
}

func (m *memory) Adopt(context.Context) ([]runtime.Sandbox, error) { return nil, nil }

func (m *memory) Close() error { return nil }

// set changes what the next calls do.
func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// log is what was created, and removed, so far.
func (m *memory) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return "+" + strings.Join(m.created, "+") + " -" + strings.Join(m.removed, "-")
}

func (m *memory) box(name string) *box {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boxes[name]
}

type box struct {
	m      *memory
	spec   runtime.Spec
	server *agent.Server
	done   chan struct{}
	end    func()
	mute   bool // it does not tell its counts

	network runtime.Network
}

func (b *box) Spec() runtime.Spec { return b.spec }

func (b *box) Counts(context.Context) (proto.Counts, error) {
	if b.mute {
		return proto.Counts{}, errors.New("it does not say")
	}
	return b.server.Counts(), nil
}

func (b *box) Network() runtime.Network { return b.network }

func (b *box) Done() <-chan struct{} { return b.done }

func (b *box) Serve(_ context.Context, c proto.Conn, hello proto.Hello) error {
	select {
	case <-b.done:
		return errors.New("the sandbox has ended")
	default:
		return b.server.Serve(c, hello)
	}
}

func (b *box) Remove(context.Context) error {
	b.m.mu.Lock()
	hold := b.m.remove
	b.m.mu.Unlock()
	if hold != nil {
		<-hold
	}
	b.server.Close()
	b.end()
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if b.m.boxes[b.spec.Name] == b {
		delete(b.m.boxes, b.spec.Name)
		b.m.removed = append(b.m.removed, b.spec.Name)
	}
	return nil
}

// logged checks what was created and removed.
func (m *memory) logged(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := m.log(); got != want {
		t.Errorf("created and removed were %s, want %s", got, want)
	}
}
