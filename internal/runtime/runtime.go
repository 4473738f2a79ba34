// Package runtime names what the rest of the server may ask of a container
// runtime. The containerd implementation is in the package below; the host
// implementation serves the machine itself, with no container.
package runtime

import (
	"context"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/proto"
)

// Spec says what one environment's sandbox is made from.
type Spec struct {
	// Name is the environment's name: 1 to 64 of A-Z a-z 0-9 . _ -, beginning
	// with a letter or a digit.
	Name string
	// Profile is the name of the profile that the other fields come from.
	Profile string
	// Image is the image's reference in the store.
	Image string
	// User overrides the image's user: "name", "uid", "name:group", "uid:gid".
	User string
	// Cwd overrides the image's working directory; "/workspace" if both are "".
	Cwd string
	// Env is laid over the image's environment, as NAME=VALUE.
	Env []string
	// CPUs is the quota in processors; 0 is none.
	CPUs float64
	// MemoryBytes limits memory, swap included; 0 is no limit.
	MemoryBytes int64
	// Pids limits processes and threads; 0 is no limit.
	Pids int64
	// ShmBytes is the size of /dev/shm.
	ShmBytes int64
	// Ephemeral sandboxes take their workspace with them when they end.
	Ephemeral bool
	// OneClient sandboxes are for one client of this daemon, and are not adopted
	// by the next.
	OneClient bool
	// AgentArgs are further arguments for the agent.
	AgentArgs []string
	// Network is what the sandbox may reach when it is made. The zero policy is
	// that of mode "none".
	Network rules.Policy
}

// Runtime makes sandboxes.
type Runtime interface {
	// Create makes and starts a sandbox whose agent answers when it returns. An
	// earlier sandbox of that name must be gone; its workspace is used again.
	// If Create fails it leaves nothing behind.
	Create(ctx context.Context, spec Spec) (Sandbox, error)
	// Adopt returns the sandboxes of an earlier daemon that still serve, and
	// removes whatever else it left: dead or half-made containers, snapshots,
	// mounts, sockets, cgroups, ephemeral sandboxes.
	Adopt(ctx context.Context) ([]Sandbox, error)
	// Close releases what the runtime itself holds. Sandboxes that were not
	// removed before run on, for a later Adopt.
	Close() error
}

// Sandbox is one running environment.
type Sandbox interface {
	// Spec is what the sandbox was made from.
	Spec() Spec
	// Serve lets the agent serve the connection until either side ends. It does
	// not close c.
	Serve(ctx context.Context, c proto.Conn, hello proto.Hello) error
	// Counts asks the agent what it has. The agent has a second to answer.
	Counts(ctx context.Context) (proto.Counts, error)
	// Network is the sandbox's way out; nil if it shares the machine's.
	Network() Network
	// Done is closed when the sandbox has ended by itself or was removed.
	Done() <-chan struct{}
	// Remove kills everything in the sandbox and removes it. The workspace is
	// kept unless the sandbox is ephemeral. It may be called again.
	Remove(ctx context.Context) error
}
