package rules

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// because is a decision in words.
func (t *Table) because(d Decision) string {
	verb := "allowed"
	if d.Verdict == Deny {
		verb = "denied"
	}
	switch {
	case d.Reason == ByMode:
		return verb + " by mode " + string(t.policy.Mode)
	case d.Rule >= 0:
		return fmt.Sprintf("%s by rule %d", verb, d.Rule+1)
	}
	return fmt.Sprintf("%s (%s)", verb, d.Reason)
}

// kindOf is what a special address is, in words.
func (t *Table) kindOf(a netip.Addr, own bool) string {
	kind, within := address.Class(a)
	text := kind.String()
	if own && kind != address.Metadata && kind != address.Loopback {
		text = "an address of the host"
	} else if within.IsValid() && !within.IsSingleIP() {
		text += " (" + within.String() + ")"
	}
	return text
}

// about is an entry in words.
func (e *entry) about() string {
	verb := "allows"
	if e.deny {
		verb = "denies"
	}
	ports := "all ports"
	if e.ports != nil {
		ports = "ports " + join(e.ports, ", ")
	}
	text := fmt.Sprintf("rule %d %s %s, %s, %s", e.rule+1, verb, e.what, ports, e.protocols)
	return text + strings.TrimSuffix(" "+strings.TrimSpace(e.credential.text()), " ")
}
