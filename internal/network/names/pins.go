package names

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of what is remembered. A pin is one name's hold on one address.
const (
	maxPins       = 4096
	maxAddrs      = 16 // of a name and family; further ones are not answered either
	maxNames      = 64 // of an address: those that share a front end
	maxFormer     = 16 // addresses of a name that no longer count, for Refresh
	trimmedToPins = maxPins / 8 * 7
)

// A pin lasts as long as upstream says, within these. The least is for the connections
// that follow a lookup, where the time to live is 0; the most has an environment
// notice within the hour that a service has moved.
const (
	minTTL = 5 * time.Second
	maxTTL = time.Hour
	// That there is no address is remembered for less: services come up.
	maxNegativeTTL = time.Minute
)

// key is a question for addresses.
type key struct {
	name string
	v6   bool
}

// found is the answer to such a question.
type found struct {
	addrs []netip.Addr
	// missing is set if there is no such name at all.
	missing bool
	// removed are the addresses that the policy took out.
	removed []netip.Addr
	until   time.Time
}

// entry is an answer that is remembered, and what were answers before.
type entry struct {
	found
	former []netip.Addr
}

// size is what an entry counts.
func (e *entry) size() int { return max(1, len(e.addrs)+len(e.former)) }

// pins remembers answers, for their time and after it until the room is needed.
type pins struct {
	mu      sync.Mutex // guards what follows
	entries map[key]*entry
	holders map[netip.Addr]map[string]time.Time // until when each name has the address
	count   int                                 // the sizes of all entries
}

// get returns the answer to a question if it is still valid.
func (p *pins) get(k key, now time.Time) (found, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	if e == nil || !now.Before(e.until) {
		return found{}, false
	}
	return e.found, true
}

// put remembers an answer. It keeps the slice, which nobody changes afterwards.
func (p *pins) put(k key, f found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries == nil {
		p.entries = map[key]*entry{}
		p.holders = map[netip.Addr]map[string]time.Time{}
	}
	e := &entry{found: f}
	if old := p.entries[k]; old != nil {
		for _, a := range slices.Concat(old.addrs, old.former) {
			if len(e.former) < maxFormer && !slices.Contains(f.addrs, a) {
				e.former = append(e.former, a)
			} else if !slices.Contains(f.addrs, a) {
				p.release(k.name, a)
			}
		}
		p.count -= old.size()
	}
	p.entries[k] = e
	p.count += e.size()
	for _, a := range f.addrs {
		p.hold(k, a, f.until)
	}
	p.trim(k)
}

// hold pins an address to a name. Where it has too many already, the one that ends
// first gives way, with all its addresses: what is answered is always pinned.
func (p *pins) hold(k key, a netip.Addr, until time.Time) {
	names := p.holders[a]
	if names == nil {
		names = map[string]time.Time{}
		p.holders[a] = names
	}
	if _, ok := names[k.name]; !ok && len(names) >= maxNames {
		first := ""
		for name, end := range names {
			if first == "" || end.Before(names[first]) {
				first = name
			}
		}
		p.drop(key{first, k.v6})
	}
	names[k.name] = until
}

// release undoes hold.
func (p *pins) release(name string, a netip.Addr) {
	delete(p.holders[a], name)
	if len(p.holders[a]) == 0 {
		delete(p.holders, a)
	}
}

// drop forgets an entry.
func (p *pins) drop(k key) {
	e := p.entries[k]
	for _, a := range slices.Concat(e.addrs, e.former) {
		p.release(k.name, a)
	}
	p.count -= e.size()
	delete(p.entries, k)
}

// trim makes room where there is too much, an eighth at once. What ends first goes
// first, but for the newest.
func (p *pins) trim(newest key) {
	if p.count <= maxPins {
		return
	}
	order := slices.SortedFunc(maps.Keys(p.entries), func(a, b key) int {
		return p.entries[a].until.Compare(p.entries[b].until)
	})
	for _, k := range order {
		if p.count <= trimmedToPins {
			return
		}
		if k != newest {
			p.drop(k)
		}
	}
}

// names returns the names whose pins for an address are valid, or those that are not.
func (p *pins) names(a netip.Addr, now time.Time, valid bool) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name, until := range p.holders[a] {
		if now.Before(until) == valid {
			names = append(names, name)
		}
	}
	return names
}

// pinned says whether a name's pin for an address is valid.
func (p *pins) pinned(name string, a netip.Addr, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.holders[a][name])
}
