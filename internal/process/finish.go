package process

// Finish waits for the end of a command that nobody else watches, and gives what
// it printed as far as that is retained. Then whatever it left behind is killed.
// If cancel is closed first, all of it is killed at once.
func (p *Process) Finish(cancel <-chan struct{}) (printed map[Stream][]byte, code int, ended bool) {
	go p.Run()
	defer p.Abandon()
	for {
		p.mu.Lock()
		exited := p.exited
		if !exited && p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		if exited {
			break
		}
		select {
		case <-changed:
		case <-cancel:
			return nil, 0, false
		}
	}
	r, _ := p.look(0, 0, false, false)
	printed = make(map[Stream][]byte)
	for _, c := range r.Chunks {
		printed[c.Stream] = append(printed[c.Stream], c.Data...)
	}
	return printed, r.ExitCode, true
}
