package credential

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/secret"
)

// pollEvery is how often a file is looked at.
const pollEvery = 3 * time.Second

// notice is a channel that is closed and replaced each time something changes.
type notice struct {
	mu sync.Mutex
	// mu guards ch, which Changed makes when it is first asked for.
	ch chan struct{}
}

// Changed returns the channel that the next change closes.
func (n *notice) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *notice) fire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// poll reads a file again and again until ctx ends, and fires when it has become
// another, has come or gone. Reading is the only way that sees a secret renewed
// through symbolic links, as Kubernetes does it, within the same second.
func poll(ctx context.Context, path string, limit int, n *notice) {
	last := fingerprint(path, limit)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := fingerprint(path, limit); now != last {
			last = now
			n.fire()
		}
	}
}

// fingerprint is what two states of a file differ in.
func fingerprint(path string, limit int) [sha256.Size]byte {
	text, err := secret.File(path, limit)
	if err != nil {
		text = []byte("\x00" + err.Error())
	}
	return sha256.Sum256(text)
}
