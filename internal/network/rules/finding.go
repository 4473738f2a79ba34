package rules

import (
	"net/netip"
	"slices"
)

// Finding is a decision as explanations have it.
type Finding struct {
	// Decision is "allowed" or "denied".
	Decision string `json:"decision"`
	Reason   Reason `json:"reason"`
	// Rule is the number of the rule that it comes from, from 1; 0 is none.
	Rule int `json:"rule,omitempty"`
	// Lookup is the name that it is about, if it is about looking that up.
	Lookup string `json:"lookup,omitempty"`
	// Protocols and Addrs are what else it is about.
	Protocols []Protocol   `json:"protocols,omitempty"`
	Addrs     []netip.Addr `json:"addresses,omitempty"`
}

// Explanation is what is decided, and why.
type Explanation struct {
	// Finding is the first that allows a connection, or else the last that denies it.
	Finding
	// All are about the look-up, about its answers that are left out, and about
	// connections.
	All []Finding `json:"all"`
	// Lines say it for people.
	Lines []string `json:"lines"`
}

func finding(d Decision) Finding {
	f := Finding{Decision: "denied", Reason: d.Reason, Rule: d.Rule + 1}
	if d.Verdict == Allow {
		f.Decision = "allowed"
	}
	return f
}

// add puts a finding and its lines behind what is there.
func (x *Explanation) add(f Finding, lines ...string) {
	x.All = append(x.All, f)
	x.Lines = append(x.Lines, lines...)
}

// conclude says what is decided in all.
func (x *Explanation) conclude() Explanation {
	x.Finding = x.All[len(x.All)-1]
	connected := func(f Finding) bool { return f.Decision == "allowed" && f.Lookup == "" }
	if i := slices.IndexFunc(x.All, connected); i >= 0 {
		x.Finding = x.All[i]
	}
	return *x
}

// Refuse is for what stands before all rules: whatever they say is denied.
func (x *Explanation) Refuse(r Reason, line string) {
	x.Finding = finding(deny(r).Decision)
	x.All = append([]Finding{x.Finding}, x.All...)
	x.Lines = append([]string{line}, x.Lines...)
}
