package containerd

import (
	"strings"
	"sync"
)

// ringSize is how much of an agent's standard error is kept, in bytes.
const ringSize = 4 << 10

// ring keeps the last ringSize bytes that were written to it. What it keeps
// comes from inside a container.
type ring struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

// Write implements io.Writer; it never fails.
func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	p = p[max(0, n-ringSize):]
	r.buf = append(r.buf[max(0, len(r.buf)+len(p)-ringSize):], p...)
	return n, nil
}

// tail is the last few lines, fit for an error message: control characters are
// replaced.
func (r *ring) tail() string {
	r.mu.Lock()
	text := string(r.buf)
	r.mu.Unlock()
	lines := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' })
	lines = lines[max(0, len(lines)-5):]
	return strings.Map(func(c rune) rune {
		if c < ' ' || 0x7f <= c && c < 0xa0 {
			return '.'
		}
		return c
	}, strings.Join(lines, " | "))
}
