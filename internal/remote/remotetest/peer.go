package remotetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/relay"
)

// Options say how a peer is made. The zero value is the usual one.
type Options struct {
	// Addr is where the peer listens: HOST:PORT. "" is a free port of the loopback
	// address.
	Addr string
	// Listener, if not nil, is listened on in place of Addr. The peer closes it.
	Listener net.Listener
	// OnFrame, if not nil, sees each frame that an executor sends, before any fault,
	// on the goroutine that reads its socket. raw is the whole message.
	OnFrame func(environmentID string, raw []byte, f relay.Frame)
}

// Peer is a registry, a rendezvous, and as many harnesses as are opened.
type Peer struct {
	// URL is the base URL of the registry, for --remote.
	URL string

	opts    Options
	server  *http.Server
	harness *noise.KeyPair // of all harnesses here
	other   *noise.KeyPair // whose key is always the wrong one
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup // the server, and requests that are being handled

	mu       sync.Mutex // guards all below
	closed   bool
	changed  chan struct{} // closed, and another made, when something is different
	calls    []*Call
	odd      []string
	envs     map[string]*environment
	faults   map[string]*Faults
	grants   map[string]grant
	numbered int // registrations and grants
}

// environment is one that an executor has registered.
type environment struct {
	id           string
	direct       bool
	registration string
	key          noise.PublicKey
	socket       *socket // nil while there is none
	sockets      int     // there have been so many
}

// New starts a peer that ends with the test.
func New(t testing.TB, opts Options) *Peer {
	t.Helper()
	l := opts.Listener
	if l == nil {
		addr := opts.Addr
		if addr == "" {
			addr = "127.0.0.1:0"
		}
		var err error
		if l, err = net.Listen("tcp", addr); err != nil {
			t.Fatal(err)
		}
	}
	p := &Peer{
		URL: "http://" + l.Addr().String(), opts: opts,
		changed: make(chan struct{}), envs: map[string]*environment{}, faults: map[string]*Faults{}, grants: map[string]grant{},
	}
	for _, key := range []**noise.KeyPair{&p.harness, &p.other} {
		var err error
		if *key, err = noise.GenerateKeyPair(); err != nil {
			t.Fatal(err)
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: http.HandlerFunc(p.handle), ConnContext: keepGate}
	p.work.Go(func() { _ = p.server.Serve(gates{l}) })
	t.Cleanup(p.Close)
	return p
}

// Close ends everything at once, and returns when it has ended.
func (p *Peer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	_ = p.server.Close()
	p.work.Wait()
}

// begin enters a piece of work that Close waits for, unless it is too late.
func (p *Peer) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Add(1)
	}
	return !p.closed
}

// tell has whoever waits look again. The caller holds p.mu.
func (p *Peer) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until ready, which is called with p.mu held, returns true.
func (p *Peer) await(ctx context.Context, ready func() bool) error {
	for {
		p.mu.Lock()
		done, changed := ready(), p.changed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ctx.Done():
			return errors.New("remotetest: the peer is closed")
		}
	}
}

// AwaitSocket waits until the executor of an environment is connected, and has
// been so at least n times.
func (p *Peer) AwaitSocket(ctx context.Context, environmentID string, n int) error {
	return p.await(ctx, func() bool {
		e := p.envs[environmentID]
		return e != nil && e.socket != nil && e.sockets >= n
	})
}

// Sockets is how often the executor of an environment has connected.
func (p *Peer) Sockets(environmentID string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.envs[environmentID]; e != nil {
		return e.sockets
	}
	return 0
}

// Registration is the id of the latest registration of an environment.
func (p *Peer) Registration(environmentID string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.envs[environmentID]; e != nil {
		return e.registration
	}
	return ""
}
