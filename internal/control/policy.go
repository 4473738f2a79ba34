package control

import (
	"context"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// Policy is what there is to tell about the network policy of an environment.
type Policy struct {
	Name    string `json:"name"`
	Profile string `json:"profile"`
	// Running says that the environment has a sandbox. Else the policy is the one
	// that its next has.
	Running bool `json:"running"`
	// Known says that there is, or was, an environment of that name, or that it is
	// configured. A harness may connect to any other name as well.
	Known bool `json:"known"`
	// Unconfined says that there is no policy, since commands run on the machine.
	Unconfined bool         `json:"unconfined,omitempty"`
	Policy     rules.Policy `json:"policy"`
	// Stats are the counters of the sandbox.
	Stats *network.Stats `json:"stats,omitempty"`
	// Notes are for the user who has changed it, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// EditPolicy says what is to become of the policy of a running environment, one
// after the other: what it begins from, what goes, what comes, what is changed.
type EditPolicy struct {
	Name string `json:"name"`
	// Reset begins from what the profile says, and Whole from this, in place of the
	// policy that is in force.
	Reset bool          `json:"reset,omitempty"`
	Whole *rules.Policy `json:"whole,omitempty"`
	// Remove are indexes of rules, as they are before the edit.
	Remove []int `json:"remove,omitempty"`
	// Add are rules that come after those that are there.
	Add  []rules.Rule `json:"add,omitempty"`
	Mode rules.Mode   `json:"mode,omitempty"`
	// Those of the limits that are not nil take the place of what is there, as in
	// rules.Limits.
	Bandwidth      *int64 `json:"bandwidth,omitempty"`
	Volume         *int64 `json:"volume,omitempty"`
	Connections    *int   `json:"connections,omitempty"`
	ConnectionRate *int   `json:"connection_rate,omitempty"`
	// Close ends open connections that the new policy denies.
	Close bool `json:"close,omitempty"`
}

// ExplainPolicy asks what would become of a connection.
type ExplainPolicy struct {
	Name     string         `json:"name"`
	Target   string         `json:"target"` // as rules.Ask reads it
	Protocol rules.Protocol `json:"protocol,omitempty"`
}

// Explained is the answer.
type Explained struct {
	// These are as in Policy.
	Profile string `json:"profile"`
	Running bool   `json:"running"`
	Known   bool   `json:"known"`
	rules.Explanation
}

// What answers the requests.
var (
	getPolicy     = answered(func(ctx context.Context, b Backend, p nameParams) (Policy, error) { return b.Policy(ctx, p.Name) })
	setPolicy     = answered(func(ctx context.Context, b Backend, p EditPolicy) (Policy, error) { return b.EditPolicy(ctx, p) })
	explainPolicy = answered(func(ctx context.Context, b Backend, p ExplainPolicy) (Explained, error) {
		return b.ExplainPolicy(ctx, p)
	})
)

// GetPolicy asks the daemon at that socket for an environment's policy.
func GetPolicy(ctx context.Context, path, name string) (p Policy, err error) {
	return p, call(ctx, path, "env.policy.get", nameParams{name}, &p)
}

// SetPolicy changes an environment's policy, and returns what it is then.
func SetPolicy(ctx context.Context, path string, e EditPolicy) (p Policy, err error) {
	return p, call(ctx, path, "env.policy.set", e, &p)
}

// Explain asks what an environment's policy decides.
func Explain(ctx context.Context, path string, q ExplainPolicy) (e Explained, err error) {
	return e, call(ctx, path, "env.policy.explain", q, &e)
}
