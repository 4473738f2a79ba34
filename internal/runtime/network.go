package runtime

import (
	"context"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// Network is the way out of a sandbox, as network.Way is one.
type Network interface {
	// Policy is the one that is in force.
	Policy() rules.Policy
	// Set puts another in force, for new connections at once, and with closeOpen
	// for open ones too. If it fails nothing has changed. What was set counts as
	// long as the sandbox lives, for later daemons too.
	Set(policy rules.Policy, closeOpen bool) error
	// Explain says what would become of a connection, and which rule decides.
	Explain(ctx context.Context, q rules.Question) rules.Explanation
	// Stats are its counters, since this daemon has opened it.
	Stats() network.Stats
	// Close ends the way: nothing passes any more. It may be called again.
	Close() error
}
