package containerd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/veth"
	"github.com/exec-server/exec-server/internal/runtime"
)

// Options say what a Runtime is made from.
type Options struct {
	// Server is the embedded containerd, which the runtime then owns: Close
	// stops it. Nil uses Client.
	Server *Server
	// Client is a client of an existing containerd. It is ignored with a Server.
	Client *client.Client
	// Namespace is the containerd namespace; "" is the Server's or else
	// DefaultNamespace.
	Namespace string
	// Root is the directory of what lasts: environments/NAME has the workspace
	// of each environment. It may be the Server's.
	Root string
	// State is the directory of what ends with a reboot: e/ID has what the daemon
	// and a container share. It may be the Server's. The last element of
	// its path, or else a hash of it, tells several daemons of a machine apart.
	State string
	// RuncPath is the OCI runtime; "" is that of the Server or of containerd.
	RuncPath string
	// AgentBinary is the static executable that becomes PID 1 of containers.
	AgentBinary []byte
	// HelperBinary is the static executable that the agent starts for what it
	// does not do itself; without it that fails.
	HelperBinary []byte
	// Upstream is asked for the names that sandboxes may look up.
	Upstream *names.Upstream
	// VEthV4 and VEthV6 are where the links of sandboxes have their addresses from, as
	// veth.Options has it.
	VEthV4, VEthV6 netip.Prefix
	// Network puts the policy of a sandbox in force; nil is network.Open.
	Network func(network.Options) (runtime.Network, error)
	// Log gets what is worth knowing but is nobody's error.
	Log zerolog.Logger
}

// Runtime makes containers. It implements runtime.Runtime.
type Runtime struct {
	opts   Options
	client *client.Client
	veth   *veth.Host
	shim   shimChoice
	envs   *environments
	cgroup cgroupTree
	agent  string // path of the agent's binary on the host
	helper string // that of the helper's, or ""
	idmap  bool   // whether layers can be id-mapped when they are mounted

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // watchers and clean-ups

	mu sync.Mutex // guards all below
	// sandboxes has every sandbox that is there, by name; nil for one that is
	// being made.
	sandboxes map[string]*sandbox
	reaping   bool // orphans are being looked for
}

var _ runtime.Runtime = (*Runtime)(nil)

// New makes the runtime and its directories. Call Adopt before Create.
func New(opts Options) (*Runtime, error) {
	r := &Runtime{opts: opts, client: opts.Client, sandboxes: map[string]*sandbox{}}
	if s := opts.Server; s != nil {
		r.client = s.Client()
		r.opts.Namespace = s.Namespace()
	}
	if r.opts.Namespace == "" {
		r.opts.Namespace = DefaultNamespace
	}
	if r.client == nil {
		return nil, errors.New("make the runtime: neither a server nor a client is given")
	}
	if !filepath.IsAbs(opts.Root) || !filepath.IsAbs(opts.State) {
		return nil, fmt.Errorf("make the runtime: root %q and state %q must be absolute", opts.Root, opts.State)
	}
	if err := r.directories(); err != nil {
		return nil, fmt.Errorf("make the runtime: %w", err)
	}
	if r.opts.Network == nil {
		r.opts.Network = func(o network.Options) (runtime.Network, error) { return network.Open(o) }
	}
	var err error
	r.veth, err = veth.Open(veth.Options{Instance: instance(opts.State), V4: opts.VEthV4, V6: opts.VEthV6, Log: opts.Log})
	if err != nil {
		return nil, fmt.Errorf("make the runtime: %w", err)
	}
	if r.shim, err = chooseShim(r.opts); err != nil {
		return nil, fmt.Errorf("make the runtime: %w", err)
	}
	if r.agent, err = extract(filepath.Join(opts.Root, "agent"), "exec-agent", opts.AgentBinary, agentMode); err != nil {
		return nil, fmt.Errorf("make the runtime: extract the agent: %w", err)
	}
	if len(opts.HelperBinary) > 0 {
		if r.helper, err = extract(filepath.Join(opts.Root, "helper"), "exec-helper", opts.HelperBinary, helperMode); err != nil {
			return nil, fmt.Errorf("make the runtime: extract the helper: %w", err)
		}
	}
	if r.envs, err = openEnvironments(filepath.Join(opts.Root, "environments")); err != nil {
		return nil, fmt.Errorf("make the runtime: %w", err)
	}
	r.cgroup = findCgroups(instance(opts.State))
	r.ctx, r.cancel = context.WithCancel(namespaces.WithNamespace(context.Background(), r.opts.Namespace))
	r.tasks.Go(r.keepVolumes)
	if r.idmap, err = r.probeIDMap(r.ctx); err != nil {
		r.opts.Log.Info().Err(err).Msg("layers cannot be id-mapped here; images are copied once per environment instead")
	}
	return r, nil
}

// directories makes the directories, with the modes that they must have.
func (r *Runtime) directories() error {
	for _, dir := range []struct {
		path string
		mode os.FileMode
	}{
		{r.opts.State, 0o711}, // user namespaces must get through
		{filepath.Join(r.opts.State, "e"), 0o700},
		{filepath.Join(r.opts.Root, "environments"), 0o700},
	} {
		if err := os.MkdirAll(dir.path, dir.mode); err != nil {
			return err
		}
		if err := os.Chmod(dir.path, dir.mode); err != nil {
			return err
		}
	}
	return nil
}

// with returns ctx with the containerd namespace in it.
func (r *Runtime) with(ctx context.Context) context.Context {
	return namespaces.WithNamespace(ctx, r.opts.Namespace)
}

// lasting returns a context for work that must not be left half done, with
// ctx's values but a deadline of its own.
func (r *Runtime) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.with(context.WithoutCancel(ctx)), removeTimeout)
}
