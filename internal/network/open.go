package network

import "github.com/exec-server/exec-server/internal/network/rules"

// spawn runs f, which Close waits for. It is false if the way is closed.
func (w *Way) spawn(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.work.Go(f)
	return true
}

func (w *Way) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// add has Set and Close know of a connection. It is false if the way is closed.
func (w *Way) add(c *connection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.open[c] = struct{}{}
	return true
}

func (w *Way) remove(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

// drop closes the upstream side of a connection, and gives its place back.
func (w *Way) drop(c *connection) {
	w.budget.leave()
	_ = c.upstream.Close()
}

// all returns the connections that are open.
func (w *Way) all() []*connection {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*connection, 0, len(w.open))
	for c := range w.open {
		all = append(all, c)
	}
	return all
}

// closeDenied ends the open connections that a table denies.
func (w *Way) closeDenied(t *rules.Table) {
	for _, c := range w.all() {
		w.mu.Lock()
		denied := c.denies(t)
		w.mu.Unlock()
		if denied {
			c.reset()
		}
	}
}
