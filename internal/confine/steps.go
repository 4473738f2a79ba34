package confine

import (
	"slices"
	"strings"
)

// step puts something over a path, or under it where nothing else is shown.
type step struct {
	at   string // where, without links
	from string // what is shown there; of the same name but for links
	how  access // read or write show from; deny hides it
	dir  bool   // what is there is a directory
	// made says that nothing is there, and that it must not be made: something
	// empty stands in for it.
	made bool
	// opened says that something below is shown although this is denied.
	opened bool
}

// maxSteps bounds the mounts of one command.
const maxSteps = 4096

// steps leaves out what changes nothing and marks what is opened below.
func (b *planner) steps() ([]step, error) {
	if len(b.real) > maxSteps {
		return nil, refuse("it would take %d mounts, the limit is %d", len(b.real), maxSteps)
	}
	all := make([]step, 0, len(b.real))
	for _, s := range b.real {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y step) int { return comparePaths(x.at, y.at) })
	base := hidden
	if b.p.shown() {
		base = b.p.paths["/"]
	}
	kept := all[:0]
	var around []int // indexes in kept of the steps around the present one
	for _, s := range all {
		if s.at == "/" {
			continue
		}
		for len(around) > 0 && !within(kept[around[len(around)-1]].at, s.at) {
			around = around[:len(around)-1]
		}
		outer, alias := base, false
		if len(around) > 0 {
			o := kept[around[len(around)-1]]
			outer, alias = o.how, o.from != o.at
		}
		switch {
		case s.how == deny && outer == hidden:
			continue
		case s.how == outer && s.how != write && !s.made && !alias:
			continue // a writable one stays, so that it cannot be moved away
		case s.made && outer != write:
			continue // nothing can be made there anyway
		}
		if outer == deny {
			kept[around[len(around)-1]].opened = true
		}
		kept = append(kept, s)
		around = append(around, len(kept)-1)
	}
	return kept, nil
}

// comparePaths orders paths so that whatever is in a directory follows it.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
