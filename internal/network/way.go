// Package network is the only way out of an environment: a Way decides what its
// programs may reach, makes those connections from the host, and counts and logs
// what it denied. docs/network.md has the picture.
package network

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// Options say whose way out it is.
type Options struct {
	// Netns is the network namespace of the environment. It is the caller's, and
	// may be closed after Open.
	Netns  *os.File
	Policy rules.Policy
	// Dir is where the environment's CA is kept, if its policy has one.
	Dir string
	// Used is how many bytes have passed before, for Policy.Bytes.
	Used int64
	Log  zerolog.Logger // names the environment
}

// Way is the way out of one environment.
type Way struct {
	opts Options
}

// Open makes the way out. With a policy of mode none nothing is set up in the
// namespace until Set has another. An invalid policy is an error that says which
// rule is wrong.
func Open(o Options) (*Way, error) {
	return nil, errors.ErrUnsupported
}

// Policy returns the policy that is in force.
func (w *Way) Policy() rules.Policy { return w.opts.Policy }

// Set puts another policy in force: at once for new connections, for requests on
// open HTTP connections and for lookups. With closeOpen, open connections that it
// denies are reset. If it fails the policy before stays in force.
func (w *Way) Set(p rules.Policy, closeOpen bool) error { return errors.ErrUnsupported }

// Explain says in lines of text what is decided about a target, which is a
// HOST:PORT, and by which rule. The protocol is "" for what fits the port. A name
// is looked up only if the policy lets the environment do that.
func (w *Way) Explain(ctx context.Context, target string, protocol rules.Protocol) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// Authority returns the certificate, in PEM, of the CA that the environment is to
// trust, or nil if its policy intercepts nothing.
func (w *Way) Authority() []byte { return nil }

// Stats returns what passed and what was denied since Open.
func (w *Way) Stats() Stats { return Stats{} }

// Close ends all connections and takes the way out away. What was set up in the
// namespace denies everything from then on.
func (w *Way) Close() error { return nil }

// Stats is what passed and what was denied.
type Stats struct {
	Total Count
	// Names has the counts of each name, or address where there was no name. It is
	// bounded: the rest is under "other".
	Names map[string]Count
	// Denied is by reason.
	Denied map[rules.Reason]uint64
	// Denials are the last ones, the newest first.
	Denials []Denial
	// Lookups is how many names were looked up and allowed.
	Lookups uint64
	// Used is how many bytes count for Policy.Bytes, Options.Used included.
	Used int64
	// Open is how many connections are open or in the making.
	Open int
}

// Denial is a connection, a request or a lookup that was denied.
type Denial struct {
	At     time.Time
	What   string
	Reason rules.Reason
	Rule   int
}

// Count counts connections, requests and lookups, and bytes. In is towards the
// environment.
type Count struct {
	Allowed, Denied uint64
	In, Out         uint64
}
