package containerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/containerd/containerd/v2/defaults"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// apiPlugin serves containerd's API on a socket, for the other commands of this
// program. It replaces containerd's own server plugin, which cannot be started
// twice in a process, leaves its listener open when the server stops, and makes
// its socket accessible to a group.
const apiPlugin = "exec-server-api"

func init() {
	registry.Register(&plugin.Registration{
		Type:     plugins.ServerPlugin,
		ID:       apiPlugin,
		Requires: []plugin.Type{plugins.GRPCPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			s, err := serverOf(ic.Context)
			if err != nil {
				return nil, err
			}
			api := &apiServer{
				path: s.Address(),
				grpc: grpc.NewServer(
					grpc.MaxRecvMsgSize(defaults.DefaultMaxRecvMsgSize),
					grpc.MaxSendMsgSize(defaults.DefaultMaxSendMsgSize),
					grpc.UnaryInterceptor(unaryNamespace),
					grpc.StreamInterceptor(streamNamespace)),
			}
			for _, p := range ic.GetAll() {
				if p.Registration.Type != plugins.GRPCPlugin {
					continue
				}
				instance, err := p.Instance()
				if err != nil {
					continue // reported where it failed
				}
				if service, ok := instance.(interface{ Register(*grpc.Server) error }); ok {
					if err := service.Register(api.grpc); err != nil {
						return nil, fmt.Errorf("register %s: %w", p.Registration.URI(), err)
					}
				}
			}
			return api, nil
		},
	})
}

// apiServer is the listener of containerd's API; containerd starts and closes
// it with its other plugins.
type apiServer struct {
	path string
	grpc *grpc.Server
}

// Start listens and serves in the background.
func (a *apiServer) Start(ctx context.Context) error {
	if err := os.Remove(a.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an old socket: %w", err)
	}
	// A socket's file gets its mode from the socket, minus the umask. So it never
	// has a wider one than 0600.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var chmod error
		err := c.Control(func(fd uintptr) { chmod = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, chmod)
	}}
	l, err := config.Listen(ctx, "unix", a.path)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	go func() { _ = a.grpc.Serve(l) }() // its only error is that of Close
	return nil
}

// Close ends the listener and every connection.
func (a *apiServer) Close() error {
	a.grpc.Stop()
	return nil
}

// unaryNamespace carries the namespace of a call on to the calls made for it.
func unaryNamespace(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	return handle(withSameNamespace(ctx), req)
}

// streamNamespace is unaryNamespace for streams.
func streamNamespace(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, namespacedStream{ss, withSameNamespace(ss.Context())})
}

func withSameNamespace(ctx context.Context) context.Context {
	if ns, ok := namespaces.Namespace(ctx); ok {
		return namespaces.WithNamespace(ctx, ns)
	}
	return ctx
}

// namespacedStream is a stream with another context.
type namespacedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s namespacedStream) Context() context.Context { return s.ctx }
