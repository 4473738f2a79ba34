package rules

import "net/netip"

// Verdict is what is done with a flow.
type Verdict int

// The verdicts.
const (
	Deny Verdict = iota
	Allow
	// AskName allows the connection to be made, but nothing to pass until the client
	// has said by TLS or HTTP which name it wants, and Named has allowed that.
	AskName
)

// Reason is why, in one word, as logs and counters have it.
type Reason string

// The reasons.
const (
	ByRule      Reason = "rule"       // a rule of the policy
	ByMode      Reason = "mode"       // no rule speaks
	Metadata    Reason = "metadata"   // a cloud's metadata service
	LoopbackOf  Reason = "loopback"   // the host's loopback
	OwnAddress  Reason = "host"       // an address of the host
	LinkLocal   Reason = "link-local" // of the host's link
	Private     Reason = "private"    // a private network
	Reserved    Reason = "reserved"   // multicast, documentation and the like
	Rebound     Reason = "rebind"     // a name has such an address for its answer
	NoName      Reason = "no-name"    // the client did not say a name
	HiddenName  Reason = "hidden-name"
	WrongName   Reason = "wrong-name" // the address is none of the name's answers
	NoSecret    Reason = "credential" // the rule's secret cannot be read
	TooMany     Reason = "connections"
	TooMuch     Reason = "volume"
	Unsupported Reason = "protocol" // there is no path for it in this mode
	Local       Reason = "local"    // of explanations alone: it stays in the environment
)

// Decision is a verdict, and which rule it comes from.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// Rule is the index of the rule in Policy.Rules, or -1.
	Rule int
	// Credential is what is to be added, for a named flow that is allowed.
	Credential *Credential
}

// Flow is what is known of a flow when it begins.
type Flow struct {
	// Protocol is TCP, UDP or ICMP.
	Protocol Protocol
	Addr     netip.Addr // unmapped
	Port     uint16
	// Own is set if the address is one of the host's.
	Own bool
	// Names are those that have the address for an answer.
	Names []string
}
