package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

func TestMain(m *testing.M) { testnet.Main(m) }

// rig is a way whose namespace and whose world are on loopback.
type rig struct {
	*Way
	t        *testing.T
	listener net.Listener
	log      *lockedBuffer

	mu     sync.Mutex // guards what follows
	world  map[string]string
	asked  map[netip.AddrPort]netip.AddrPort // what a program's address has connected to
	dialed []netip.AddrPort
	pins   map[string][]netip.Addr
	// removed are what is taken out of a name's answers.
	removed map[string][]netip.Addr
	former  map[string][]netip.Addr // which Refresh makes pins
	pause   chan struct{}           // dials wait for it, if there is one
}

// newRig makes one, whose names are "NAME ADDRESS".
func newRig(t *testing.T, p rules.Policy, names ...string) *rig {
	t.Helper()
	r := &rig{
		t: t, log: &lockedBuffer{}, world: map[string]string{}, asked: map[netip.AddrPort]netip.AddrPort{},
		pins: map[string][]netip.Addr{}, former: map[string][]netip.Addr{},
	}
	for i := 0; i < len(names); i += 2 {
		r.pins[names[i]] = append(r.pins[names[i]], netip.MustParseAddr(names[i+1]))
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	r.Way = newWay(Options{Netns: null, Log: zerolog.New(r.log)})
	r.names, r.own = r, func(netip.Addr) bool { return false }
	r.dial, r.original = r.dialWorld, r.originalOf
	r.setUp = func() (closer, error) {
		r.listener, err = net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			r.spawn(func() { r.accept(r.listener) })
		}
		return r.listener, err
	}
	if err := r.Set(p, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if n := r.budget.connections(); n != 0 {
			t.Errorf("%d places are taken still", n)
		}
	})
	return r
}

func (r *rig) Names(a netip.Addr) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, addrs := range r.pins {
		if slices.Contains(addrs, a) {
			names = append(names, name)
		}
	}
	return names
}

func (r *rig) Refresh(_ context.Context, a netip.Addr) []string {
	r.mu.Lock()
	for name, addrs := range r.former {
		if slices.Contains(addrs, a) {
			r.pins[name] = addrs
		}
	}
	r.mu.Unlock()
	return r.Names(a)
}

func (r *rig) Pinned(name string, a netip.Addr) bool {
	return slices.Contains(r.Names(a), name)
}

func (r *rig) Lookup(_ context.Context, name string) (addrs, removed []netip.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pins[name] == nil {
		return nil, nil, errors.New("no server answers")
	}
	return r.pins[name], r.removed[name], nil
}

func (r *rig) dialWorld(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	r.mu.Lock()
	real, pause := r.world[to.String()], r.pause
	r.dialed = append(r.dialed, to)
	r.mu.Unlock()
	if pause != nil {
		select {
		case <-pause:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if real == "" {
		return nil, unix.ECONNREFUSED
	}
	return dialHost(ctx, netip.MustParseAddrPort(real))
}

func (r *rig) originalOf(c net.Conn) (netip.AddrPort, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, ok := r.asked[c.RemoteAddr().(*net.TCPAddr).AddrPort()]
	if !ok {
		return to, errors.New("nobody asked for it")
	}
	return to, nil
}

// dials returns what was dialled.
func (r *rig) dials() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dialed)
}

// serve has an address of the world be served by f.
func (r *rig) serveAt(to string, f func(*net.TCPConn)) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { f(c.(*net.TCPConn)) })
		}
	})
	r.t.Cleanup(func() { _, _ = r.Close(), l.Close(); running.Wait() })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world[to] = l.Addr().String()
}

// packet is a first packet.
type packet chan string

func (p packet) Accept() { p <- "accepted" }
func (p packet) Refuse() { p <- "refused" }
func (p packet) Drop()   { p <- "dropped" }

// bypass is for a connection whose first packet nobody has seen.
const bypass = "bypass"

// program connects as a program would. The error is the verdict on the first packet,
// if that is not accepted.
func (r *rig) program(to string, how ...string) (*net.TCPConn, error) {
	target := netip.MustParseAddrPort(to)
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		_ = raw.Control(func(fd uintptr) {
			if err = unix.Bind(int(fd), &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				return
			}
			sa, _ := unix.Getsockname(int(fd))
			from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(sa.(*unix.SockaddrInet4).Port))
			r.mu.Lock()
			r.asked[from] = target
			r.mu.Unlock()
			if len(how) > 0 {
				return
			}
			p := make(packet, 1)
			r.first(key{from, target}, p)
			if v := <-p; v != "accepted" {
				err = errors.New(v)
			}
		})
		return err
	}}
	c, err := d.Dial("tcp", r.listener.Addr().String())
	if err != nil {
		var inner *net.OpError
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, err
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn), nil
}

// must is program, where that has to work.
func (r *rig) must(to string, how ...string) *net.TCPConn {
	r.t.Helper()
	c, err := r.program(to, how...)
	if err != nil {
		r.t.Fatalf("connect to %s: %v", to, err)
	}
	return c
}

// eventually waits for counters, and shows what they are if that takes too long.
func (r *rig) eventually(t *testing.T, is func(Stats) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(r.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the counters are %+v", r.Stats())
		}
	}
}

// say sends text, and returns what comes until the end. The error is that the end is
// not the other's, but a reset.
func say(t *testing.T, c *net.TCPConn, text string) (string, error) {
	t.Helper()
	_, sent := c.Write([]byte(text))
	closed := c.CloseWrite()
	b, err := io.ReadAll(c)
	return string(b), errors.Join(sent, closed, err)
}

// echo answers with what it is told.
func echo(c *net.TCPConn) {
	defer c.Close()
	_, _ = io.Copy(c, c)
	_ = c.CloseWrite()
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
