package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Twenty environments with five busy streams each through one daemon: nobody hears
// what another one said, and the daemon takes no more with time.
func TestManyEnvironmentsThroughOneDaemon(t *testing.T) {
	const environments, streams, rounds, size = 20, 5, 12, 16 << 10
	o := newOutbound(t)
	var config strings.Builder
	for e := range environments {
		fmt.Fprintf(&config, "[environment.env-%d]\nremote = %q\nkey_env = \"E2E_KEY\"\n", e, o.peer.URL)
	}
	t.Setenv("E2E_KEY", "sk-e2e")
	t.Setenv("GOGC", "10") // so that what is not in use is not counted
	r := newRoot(t, config.String())
	s := r.serve()
	var all sync.WaitGroup
	gate := newBarrier(environments * streams)
	var sizes []int
	for e := range environments {
		for n := range streams {
			all.Go(func() {
				defer gate.leave()
				id := fmt.Sprint("env-", e)
				h := o.connect(id, "")
				mark := fmt.Sprintf("<%s/%d>", id, n)
				want := strings.Repeat(mark+"\n", size/(len(mark)+1))
				script := fmt.Sprintf("/bin/busybox yes '%s' | head -c %d; hostname", mark, len(want))
				for round := range rounds {
					if got := h.sh(script); got != want+id {
						t.Errorf("%s hears %d bytes that are not its own in round %d: %.60q", mark, len(got), round, got)
					}
					gate.wait(func() { // nobody is busy
						sizes = append(sizes, s.resident(t))
					})
				}
			})
		}
	}
	all.Wait()
	t.Logf("resident memory of the daemon after each round, in KiB: %v", sizes)
	if len(sizes) != rounds {
		t.Fatalf("%d of %d rounds were made", len(sizes), rounds)
	}
	// The first rounds fill what is kept for the next ones.
	if first, last := sizes[1], sizes[rounds-1]; last > first+first/10+4<<10 {
		t.Errorf("the daemon grows from %d to %d KiB: %v", first, last, sizes)
	}
	var connected int
	for line := range strings.Lines(r.env("", "ls")) {
		if f := strings.Fields(line); strings.HasPrefix(f[0], "env-") && f[1] == "connected" && f[4] == "0" && f[5] == strconv.Itoa(streams) {
			connected++
		}
	}
	if connected != environments {
		t.Errorf("env ls tells of %d environments with %d sessions:\n%s", connected, streams, r.env("", "ls"))
	}
	if odd := o.peer.Odd(); odd != nil {
		t.Error(strings.Join(odd, "\n"))
	}
}

// resident is how much memory the daemon has, in KiB, without its files.
func (s *server) resident(t testing.TB) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Error(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	n, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	if err != nil {
		t.Error(err)
	}
	return n
}

// barrier lets goroutines go on together.
type barrier struct {
	mu      sync.Mutex // guards all below
	parties int
	waiting int
	open    chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{parties: n, open: make(chan struct{})} }

// wait waits for all the others. The last one calls f first.
func (b *barrier) wait(f func()) {
	b.mu.Lock()
	b.waiting++
	open := b.open
	if b.waiting == b.parties {
		f()
		b.release()
	}
	b.mu.Unlock()
	select {
	case <-open:
	case <-time.After(2 * time.Minute): // who failed has left; this is slower than any
	}
}

// leave is called by who does not wait any more.
func (b *barrier) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parties--; b.waiting > 0 && b.waiting == b.parties {
		b.release()
	}
}

func (b *barrier) release() {
	b.waiting = 0
	close(b.open)
	b.open = make(chan struct{})
}
