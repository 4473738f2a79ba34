package broker

import "sync"

// handlers counts those that run.
type handlers struct {
	mu sync.Mutex
	// mu guards what is below.
	running int
	closed  bool
	over    chan struct{} // made by wait, and closed when the last one has left
}

// enter says whether another may run.
func (h *handlers) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.running++
	return true
}

func (h *handlers) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.closed && h.running == 0 {
		close(h.over)
	}
}

// wait lets no more of them in, and waits for the others.
func (h *handlers) wait() {
	h.mu.Lock()
	h.closed, h.over = true, make(chan struct{})
	if h.running == 0 {
		close(h.over)
	}
	h.mu.Unlock()
	<-h.over
}
