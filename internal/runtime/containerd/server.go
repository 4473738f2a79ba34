package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/cmd/containerd/server"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/rs/zerolog"
)

// maxState is the longest State, in bytes. Shims have sockets named by a hash
// below it, and a socket's path must fit into 107 bytes.
const maxState = 40

// DefaultNamespace is the containerd namespace that images and containers are in
// if none is named.
const DefaultNamespace = "exec-server"

// ServerOptions say where an embedded containerd keeps what.
type ServerOptions struct {
	// Root is the directory of what lasts: images, snapshots, metadata.
	Root string
	// State is the directory of what ends with a reboot: sockets, mounts, the
	// state of running containers. It has at most 40 bytes and should be on a
	// tmpfs. It becomes 0711, which user namespaces need; so must its parents be.
	State string
	// RuncPath is the OCI runtime; "" finds runc in PATH.
	RuncPath string
	// Namespace is the containerd namespace; "" is DefaultNamespace.
	Namespace string
	// Debug passes on what containerd says beyond warnings.
	Debug bool
	// Log gets containerd's messages, all at debug level: what matters to the
	// operator is in the errors that this package returns.
	Log zerolog.Logger
}

// Server is a containerd in this process.
type Server struct {
	opts   ServerOptions
	runc   string
	shim   string
	lock   *os.File
	inner  *server.Server
	client *client.Client
	cancel context.CancelFunc
	stop   sync.Once
	// stopped is why Stop could not remove the state; read it after Stop.
	stopped error
}

// Start brings up containerd. The context bounds the start only; Stop ends the
// server. It returns ErrInUse if another process has the store. Only one Server
// can run in a process at a time, because containerd keeps global state.
func Start(ctx context.Context, opts ServerOptions) (_ *Server, err error) {
	s := &Server{opts: opts}
	if s.opts.Namespace == "" {
		s.opts.Namespace = DefaultNamespace
	}
	if !filepath.IsAbs(opts.Root) || !filepath.IsAbs(opts.State) || len(opts.State) > maxState {
		return nil, fmt.Errorf("start containerd: root %q and state %q must be absolute, and state have at most %d bytes", opts.Root, opts.State, maxState)
	}
	if s.runc, err = findRunc(opts.RuncPath); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	if err := adoptOrphans(true); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	config := s.config()
	if err := server.CreateTopLevelDirectories(config); err != nil {
		return nil, fmt.Errorf("start containerd: make directories: %w", err)
	}
	if err := os.Chmod(opts.State, 0o711); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	if s.lock, err = lockStore(opts.Root); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if s.shim, err = linkShim(filepath.Join(opts.Root, "shim")); err != nil {
		return nil, fmt.Errorf("start containerd: link the shim: %w", err)
	}
	if err := mount.SetTempMountLocation(tempMounts(opts.State)); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	if _, err := mount.CleanupTempMounts(0); err != nil {
		return nil, fmt.Errorf("start containerd: remove old mounts: %w", err)
	}
	quiet(opts.Log, opts.Debug)

	run, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), serverKey{}, s))
	s.cancel = cancel
	if s.inner, err = server.New(run, config); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	if err = s.inner.Start(run); err != nil {
		return nil, fmt.Errorf("start containerd: serve: %w", err)
	}
	s.inner.Wait()
	if s.client == nil {
		return nil, errors.New("start containerd: its services did not load")
	}
	return s, ctx.Err()
}

// Client talks to the server without a socket. The contexts that are used with
// it must carry the namespace: without a socket, the client's default does not
// help.
func (s *Server) Client() *client.Client { return s.client }

// Namespace is the containerd namespace of images and containers.
func (s *Server) Namespace() string { return s.opts.Namespace }

// Address is the socket of containerd's API, for Connect in other processes.
func (s *Server) Address() string { return filepath.Join(s.opts.State, "containerd.sock") }

// Stop ends the server. Containers run on; if there is none, what it had in the
// state directory is removed. It may be called again.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.cancel != nil {
			s.cancel()
		}
		if s.inner != nil {
			s.inner.Stop()
		}
		os.Remove(s.Address())
		os.Remove(s.ttrpcAddress())
		if s.lock != nil {
			if s.stopped = s.clearState(); s.stopped != nil {
				s.opts.Log.Warn().Err(s.stopped).Msg("the state directory could not be removed")
			}
			s.lock.Close()
		}
		_ = adoptOrphans(false)
	})
}
