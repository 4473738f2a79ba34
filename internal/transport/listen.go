package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/auth"
	"github.com/exec-server/exec-server/internal/proto"
)

// Handler serves a connection until it ends. environment is the name in the
// path, "" for the root; peer is the harness for a proto.Hello. It need not close c.
type Handler func(ctx context.Context, c proto.Conn, environment, peer string)

// IsStdio says whether a --listen URL means standard input and output.
func IsStdio(u string) bool { return u == "stdio" || u == "stdio://" }

// ParseListen reads a --listen URL of the form ws://IP:PORT.
func ParseListen(raw string) (netip.AddrPort, error) {
	rest, ok := strings.CutPrefix(raw, "ws://")
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("unsupported --listen URL `%s`; expected `ws://IP:PORT` or `stdio`", raw)
	}
	addr, err := netip.ParseAddrPort(rest)
	if u, uerr := url.Parse(raw); err != nil || uerr != nil || u.Host != rest {
		return netip.AddrPort{}, fmt.Errorf("invalid websocket --listen URL `%s`; expected `ws://IP:PORT`", raw)
	}
	return addr, nil
}

// Listener is the WebSocket listener.
type Listener struct {
	tcp    *net.TCPListener
	guard  *auth.Guard
	server *http.Server
	closed context.Context // ends with Close
	cancel context.CancelFunc
}

// handshakeTime is how long a stranger may take for a request, and for its answer.
const handshakeTime = 10 * time.Second

// Listen binds the address of a --listen URL. The guard says who may connect.
func Listen(addr netip.AddrPort, guard *auth.Guard) (*Listener, error) {
	network := "tcp" // with IPv4 too, on [::]
	if addr.Addr().Is4() {
		network = "tcp4"
	}
	tcp, err := net.ListenTCP(network, net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	l := &Listener{tcp: tcp, guard: guard, server: &http.Server{
		ReadTimeout:    handshakeTime,
		WriteTimeout:   handshakeTime,
		IdleTimeout:    handshakeTime,
		MaxHeaderBytes: 64 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, wireKey{}, c)
		},
		DisableGeneralOptionsHandler: true,
	}}
	l.closed, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// URL is where harnesses connect, with the port that was bound.
func (l *Listener) URL() string { return "ws://" + l.tcp.Addr().String() }

// Serve accepts connections until Close.
func (l *Listener) Serve(ctx context.Context, h Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closed, cancel)()
	d := &door{}
	l.server.Handler = endpoint{ctx: ctx, h: h, guard: l.guard, door: d, large: semaphore.NewWeighted(maxLarge)}
	err := l.server.Serve(wireListener{l.tcp, d})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close stops accepting and ends all connections. It may be called at any time.
func (l *Listener) Close() {
	l.cancel()
	_ = l.server.Close()
	_ = l.tcp.Close()
}
