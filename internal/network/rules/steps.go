package rules

import (
	"fmt"
	"slices"
)

// levels are the steps of the order of precedence, as docs/network.md has them.
var levels = [...]string{"special address", "exact name", "prefix", "*.name", "everything"}

// trace writes one line for each step, and stops where one decides.
type trace struct {
	lines []string
	done  bool
}

func (x *trace) add(step int, name, text string) {
	x.lines = append(x.lines, fmt.Sprintf("  %d. %s: %s", step, name, text))
}

// level writes what the entries of a level say; why is why one does not count, or "".
func (x *trace) level(k kind, entries []*entry, why func(*entry) string) {
	if x.done {
		return
	}
	step, name := int(k)+2, levels[k+1]
	if len(entries) == 0 {
		x.add(step, name, "no rule")
	}
	slices.SortFunc(entries, func(a, b *entry) int { return a.order - b.order })
	for _, e := range entries {
		text := why(e)
		if x.done = text == ""; x.done {
			text = "this decides"
		}
		x.add(step, name, e.about()+": "+text)
		if x.done {
			return
		}
	}
}

// steps are those of a connection, up to the one that decides.
func (t *Table) steps(q question) []string {
	x := &trace{}
	t.specialStep(x, q)
	of := map[kind][]*entry{}
	see := func(e *entry) {
		if !slices.Contains(of[e.kind], e) {
			of[e.kind] = append(of[e.kind], e)
		}
	}
	for _, name := range append([]string{q.said}, q.names...) {
		t.named(name, see)
	}
	for _, e := range q.around {
		see(e)
	}
	admitted := map[*entry]bool{}
	t.admit(q, func(e *entry) { admitted[e] = true })
	for _, k := range []kind{exact, prefix, suffix, everything} {
		x.level(k, of[k], func(e *entry) string {
			if admitted[e] {
				return ""
			}
			return e.lacks(q)
		})
	}
	t.modeStep(x)
	return x.lines
}

// lacks is why an entry about the host does not count.
func (e *entry) lacks(q question) string {
	switch {
	case !e.protocols.cover(q.app):
		return "not for " + string(q.app)
	case !q.covered(e):
		return fmt.Sprintf("not for port %d", q.port)
	case e.deny:
		return "the client says another name"
	case e.protocols.trusting(q.app):
		return "a rule above denies that name"
	}
	return "the client has to say the name"
}

func (t *Table) specialStep(x *trace, q question) {
	reason, bits := special(q.addr, q.own)
	if reason == "" {
		x.add(1, levels[0], "no, it is public")
		return
	}
	text := "it is " + t.kindOf(q.addr, q.own)
	if e := opening(q.around, bits, q.covered); e != nil {
		x.add(1, levels[0], text+", and opened: "+e.about())
		return
	}
	missing := "that very address"
	if within, _ := q.addr.Prefix(bits); !within.IsSingleIP() {
		missing = "a prefix within " + within.String()
	}
	x.done = true
	x.add(1, levels[0], fmt.Sprintf("%s, and no rule allows %s for this: this decides", text, missing))
}

func (t *Table) modeStep(x *trace) {
	if x.done {
		return
	}
	verb := "denied"
	if t.policy.Mode == Open {
		verb = "allowed"
	}
	x.add(6, "mode "+string(t.policy.Mode), verb+": this decides")
}

// lookupSteps are those of a look-up, to which the steps about addresses do not
// belong.
func (t *Table) lookupSteps(name string) []string {
	x := &trace{}
	of := map[kind][]*entry{}
	t.named(name, func(e *entry) { of[e.kind] = append(of[e.kind], e) })
	for _, e := range t.all {
		if e.everywhere() {
			of[everything] = append(of[everything], e)
		}
	}
	for _, k := range []kind{exact, suffix, everything} {
		x.level(k, of[k], func(e *entry) string {
			if e.deny && !e.total(t.policy.VEth) {
				return "does not deny all of it"
			}
			return ""
		})
	}
	t.modeStep(x)
	return x.lines
}
