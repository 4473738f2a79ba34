package runtime

import (
	"context"
	"os"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// Network is the way out of a sandbox: what enforces its policy.
type Network interface {
	// Policy is the one that is in force.
	Policy() rules.Policy
	// Set puts another in force, for new connections at once, and with closeOpen
	// for open ones too: those that it denies end. If it fails nothing has changed.
	Set(policy rules.Policy, closeOpen bool) error
	// Explain says in lines what would become of a connection to "HOST:PORT", and
	// which rule decides. The protocol may be "".
	Explain(ctx context.Context, target string, protocol rules.Protocol) ([]string, error)
	// Stats are its counters.
	Stats() NetworkStats
	// Close ends the way: nothing passes any more. It may be called again.
	Close() error
}

// NetworkOptions say where a way out is needed, and what may pass.
type NetworkOptions struct {
	// Name is that of the environment.
	Name string
	// Netns is the sandbox's network namespace. It is the caller's.
	Netns *os.File
	// Policy is what may pass.
	Policy rules.Policy
	// Dir is the directory of what lasts of the environment, of which no sandbox
	// sees anything.
	Dir string
}

// NetworkStats are the counters of a sandbox's network since its way was opened.
type NetworkStats struct {
	Allowed int64                  `json:"allowed"` // connections
	Denied  map[rules.Reason]int64 `json:"denied"`  // connections and datagrams
	Open    int64                  `json:"open"`    // connections now
	In      int64                  `json:"bytes_in"`
	Out     int64                  `json:"bytes_out"`
	Lookups int64                  `json:"lookups"` // of names
	// Denials are the last ones, the newest first.
	Denials []Denial `json:"denials,omitempty"`
}

// Denial is a connection or a lookup that was denied.
type Denial struct {
	At     time.Time    `json:"at"`
	What   string       `json:"what"` // as in "tcp 10.0.0.1:22", "lookup example.org"
	Reason rules.Reason `json:"reason"`
	// Rule is the index of the rule that denies, or -1.
	Rule int `json:"rule"`
}
