package network

import (
	"sync"

	"golang.org/x/sys/unix"
)

// perPlace is how many descriptors of the daemon there have to be for a connection: it
// takes two, and four more while it moves bytes. The rest is for everything else.
const perPlace = 8

// places are for the connections of all environments together, so that no environment
// takes the descriptors that the daemon and the others need.
type places struct {
	most int

	mu    sync.Mutex // guards taken
	taken int
}

// everybody has the places of this process.
var everybody = sync.OnceValue(func() *places {
	var files unix.Rlimit // 0 if it is not known: nothing passes
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	return &places{most: int(min(files.Cur, 1<<30) / perPlace)}
})

// enter takes a place for an environment that has some. It is false if it has as many
// as there are left for others: so whoever comes later finds some too.
func (p *places) enter(has int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if has >= p.most-p.taken {
		return false
	}
	p.taken++
	return true
}

func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
}
