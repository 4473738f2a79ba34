package containerd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/runtime"
)

// way is a sandbox's way out. What is changed in its policy is kept on disk, for
// the next daemon.
type way struct {
	runtime.Network
	container string
	dir       string // of what lasts of the environment
	state     stateDir
	// intercept tells whether the container was made to trust its CA.
	intercept bool

	mu   sync.Mutex // serialises Set and keepVolume
	kept int64      // what was written down last of how much has passed
}

// openNetwork puts the policy in force in the namespace of the sandbox's init,
// which need not have started yet.
func (s *sandbox) openNetwork(policy rules.Policy) error {
	if policy.Mode == "" {
		policy.Mode = rules.None // as in the notes of earlier versions
	}
	ns, err := s.netns()
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer ns.Close()
	dir := s.r.envs.dir(s.spec.Name)
	n, err := s.r.opts.Network(network.Options{
		Name: s.spec.Name, Netns: ns, Upstream: s.r.opts.Upstream, Policy: policy, Dir: authorityIn(dir),
		Used: volumeOf(dir, s.task.ID()), VEth: s.r.veth,
		Log: s.r.opts.Log.With().Str("environment", s.spec.Name).Logger(),
	})
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	s.way = &way{Network: n, container: s.task.ID(), dir: dir, state: s.r.stateDir(s.task.ID()), intercept: s.spec.Network.Intercept}
	return nil
}

// reopenNetwork puts the policy in force that the sandbox had with an earlier daemon.
// If that does not work it has no network, and is not lost for that.
func (s *sandbox) reopenNetwork() error {
	policy, err := editsIn(s.r.envs.dir(s.spec.Name)).policy(s.task.ID(), s.spec.Network)
	if err == nil {
		if err = s.openNetwork(policy); err == nil || policy.Mode == rules.None {
			return err
		}
	}
	s.r.opts.Log.Error().Err(err).Str("environment", s.spec.Name).Msg("the environment has no network until its policy is set anew")
	return s.openNetwork(rules.Policy{Mode: rules.None})
}

// netns opens the network namespace of the container. The process is known by its
// number only. So it is opened between a look at whose ids it has and one at
// whether it is there still.
func (s *sandbox) netns() (*os.File, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", s.pid))
	if err != nil {
		return nil, fmt.Errorf("find the container's namespace: %w", err)
	}
	if want := fmt.Sprint(0, s.ids.base, idCount); strings.Join(strings.Fields(string(text)), " ") != want {
		return nil, fmt.Errorf("find the container's namespace: process %d is not its init", s.pid)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", s.pid))
	if err != nil {
		return nil, fmt.Errorf("open the container's namespace: %w", err)
	}
	if s.gone(0) {
		return nil, errors.Join(ErrEnded, ns.Close())
	}
	return ns, nil
}

// gone tells whether the agent's process has ended, within that many milliseconds.
func (s *sandbox) gone(within int) (gone bool) {
	raw, err := s.pidfd.SyscallConn()
	if err != nil {
		return true // it is closed when the sandbox has been removed
	}
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, within)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}

// closeNetwork ends the way out. The sandbox may have none.
func (s *sandbox) closeNetwork() error {
	if s.way == nil {
		return nil
	}
	if err := errors.Join(s.way.keepVolume(), s.way.Close()); err != nil {
		return fmt.Errorf("close the network: %w", err)
	}
	return nil
}

// Network implements runtime.Sandbox.
func (s *sandbox) Network() runtime.Network {
	if s.way == nil {
		return nil
	}
	return s.way
}

// errNoCA says why a policy cannot be in force in a container.
var errNoCA = errors.New("intercept can only be set in the profile: the container was made without a CA of its own")

// Set implements runtime.Network. What cannot be kept does not stay in force.
func (w *way) Set(policy rules.Policy, closeOpen bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if policy.Intercept && !w.intercept {
		return errNoCA
	}
	before := w.Policy()
	if err := w.Network.Set(policy, closeOpen); err != nil {
		return err
	}
	if err := editsIn(w.dir).write(edit{Container: w.container, Policy: policy}); err != nil {
		return errors.Join(fmt.Errorf("keep the policy: %w", err), w.Network.Set(before, false))
	}
	w.state.patience(before.Mode, policy.Mode)
	return nil
}
