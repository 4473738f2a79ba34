package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/registry"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
	"github.com/exec-server/exec-server/internal/remote/socket"
)

// world is a link with a registry and a rendezvous that do as a test says, on a
// clock of its own. What happens is written down with its time.
type world struct {
	t     *testing.T
	start time.Time

	mu     sync.Mutex // guards all below
	events []string
	// register answers the n-th registration, n from 1.
	register func(n int) error
	// socket serves the n-th socket, or refuses it with the status that it returns
	// at once.
	socket     func(n int, ws *websocket.Conn)
	upgrade    func(n int) int
	registered int
	sockets    int

	over    chan struct{} // closed at the end of the test
	owner   chan struct{}
	ownErr  error
	changed chan struct{}
	log     strings.Builder
	link    *Link
	cancel  context.CancelFunc
	ended   chan error
}

func inWorld(t *testing.T, transport Transport, set func(*world, *Options), f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, start: time.Now(), over: make(chan struct{}), owner: make(chan struct{}), changed: make(chan struct{}), ended: make(chan error, 1)}
		opts := Options{
			EnvironmentID: "env", Registry: w, Credential: w, Transport: transport,
			Serve: func(_ context.Context, c proto.Conn, _ proto.Hello) {
				for {
					f, err := c.ReadFrame()
					if err != nil || c.WriteFrames(f) != nil {
						return
					}
				}
			},
		}
		opts.Log = zerolog.New(&w.log)
		client := remotetest.ServePipes(w.t, w)
		opts.Dial = func(ctx context.Context, url string, header http.Header, limit int64) (*socket.Socket, error) {
			return socket.Dial(ctx, client, url, header, limit)
		}
		if set != nil {
			set(w, &opts)
		}
		var err error
		if w.link, err = New(opts); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w.cancel = cancel
		go func() { w.ended <- w.link.Run(ctx) }()
		f(w)
		cancel()
		close(w.over)
	})
}

// end ends the link, and returns what Run did.
func (w *world) end() error {
	w.cancel()
	return w.awaitEnd()
}

func (w *world) awaitEnd() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(time.Minute):
		w.t.Error("the link does not end")
		return nil
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s "+format, append([]any{time.Since(w.start).Round(time.Second)}, args...)...))
}

// registrations is how many there were.
func (w *world) registrations() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.registered
}

// noted returns what has happened since it was last asked.
func (w *world) noted() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.events, ", ")
	w.events = nil
	return all
}

// Registry.

func (w *world) RegisterNoise(context.Context, noise.PublicKey) (registry.Registration, error) {
	return w.answer()
}

func (w *world) RegisterDirect(context.Context) (registry.Registration, error) { return w.answer() }

func (w *world) answer() (registry.Registration, error) {
	w.mu.Lock()
	w.registered++
	n := w.registered
	w.mu.Unlock()
	w.note("register")
	if w.register != nil {
		if err := w.register(n); err != nil {
			return registry.Registration{}, err
		}
	}
	return registry.Registration{ID: fmt.Sprint("reg-", n), URL: fmt.Sprintf("ws://rendezvous/%d?sig=secret", n)}, nil
}

func (w *world) Validate(context.Context, string, string, noise.PublicKey, string) error { return nil }

// Credential.

func (w *world) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	r.Header.Set("Authorization", "signed for "+r.URL.Scheme+"://"+r.URL.Host)
	return nil
}
func (w *world) Allows(*url.URL) error    { return nil }
func (w *world) Scoped() bool             { return false }
func (w *world) Changed() <-chan struct{} { return w.changed }
func (w *world) Done() <-chan struct{}    { return w.owner }
func (w *world) Err() error               { return w.ownErr }

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.sockets++
	n := w.sockets
	w.mu.Unlock()
	if w.upgrade != nil {
		if status := w.upgrade(n); status != 0 {
			w.note("refused %d at %s", status, r.URL.Path)
			rw.Header().Set("X-Codex-Rendezvous-Rejection-Reason", "unknown_route")
			rw.WriteHeader(status)
			return
		}
	}
	id, sig := r.Header.Get("X-Request-Id"), r.Header.Get("Authorization")
	w.note("socket at %s", r.URL)
	if w.link.opts.Transport == Noise && (len(id) != 36 || !strings.HasPrefix(id, "req_") || sig != "") ||
		w.link.opts.Transport == Direct && (id != "" || sig != "signed for http://rendezvous") {
		w.t.Errorf("request id %q, authorization %q", id, sig)
	}
	ws, err := websocket.Accept(rw, r, nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer ws.CloseNow() //nolint:errcheck // the end of the test
	if w.socket != nil {
		w.socket(n, ws)
		return
	}
	_, _, _ = ws.Read(context.Background())
}

var errGone = io.ErrUnexpectedEOF
