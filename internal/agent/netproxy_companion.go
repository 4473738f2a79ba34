package agent

import (
	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/process"
)

// companion is what runs beside a command, by a plan that may be nil.
type companion struct {
	plan  *proxyPlan
	sess  *session
	proxy *commandProxy // nil before it is started
}

// prepare starts what has to be there before the command of spec, and makes the
// command's environment lead there. For an isolated command that is put off until
// its network is there.
func (c *companion) prepare(spec *process.Spec) error {
	switch {
	case c.plan == nil:
		return nil
	case c.plan.isolated:
		spec.Listen = func() error { return c.begin(spec) }
		return nil
	}
	return c.begin(spec)
}

// begin opens the sockets on the calling thread, which may have the command's
// network, and starts their process on another, which has the agent's.
func (c *companion) begin(spec *process.Spec) error {
	if c.plan.refused != nil {
		return confine.NewRefusal(c.plan.refused.Error(), noWayOut)
	}
	sockets, err := c.plan.open()
	if err != nil {
		return err
	}
	c.plan.announce(spec.Env, &sockets)
	done := make(chan error, 1)
	go func() {
		var err error
		c.proxy, err = c.plan.launch(c.sess, spec.ID, &sockets)
		done <- err
	}()
	return <-done
}

// noWayOut is the exit code of a command for which no way out could be made.
const noWayOut = 101

// stop ends what runs beside the command. It may be called more than once.
func (c *companion) stop() {
	if c.proxy != nil {
		c.proxy.stop()
	}
}
