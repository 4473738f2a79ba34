package image

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestPrinterPlain(t *testing.T) {
	var out bytes.Buffer
	p := NewPrinter(&out)
	p.Step("pulling")
	for _, done := range []int64{0, 1 << 20, 2 << 20, 2 << 20} {
		p.Bytes("abc", done, 2<<20)
		p.Bytes("unknown", done, 0)
	}
	p.Bytes("half", 1, 10)
	p.Step("unpacking")
	p.Close()
	if want := "pulling\nabc: 2.0MiB\nunpacking\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// screen is what has been written to a terminal.
type screen struct {
	mu    sync.Mutex // guards text
	text  []byte
	ended chan struct{}
}

func watch(master io.Reader) *screen {
	s := &screen{ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		p := make([]byte, 4096)
		for {
			n, err := master.Read(p) // EIO when the terminal is closed
			s.mu.Lock()
			s.text = append(s.text, p[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// shows waits until the text is there: bars are drawn when it suits them.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(s.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q is not in %q", text, s)
		}
	}
}

func TestPrinterTerminal(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	s := watch(master)
	p := NewPrinter(terminal)
	p.Step("pulling")
	s.shows(t, "pulling")
	p.Bytes("abc", 1<<20, 2<<20)
	s.shows(t, "abc")
	s.shows(t, "1.0 MiB / 2.0 MiB")
	p.Bytes("unknown", 5<<20, 0)
	s.shows(t, "5.0 MiB")
	p.Bytes("abc", 2<<20, 2<<20)
	p.Bytes("abc", 2<<20, 2<<20)
	s.shows(t, "2.0 MiB / 2.0 MiB")
	p.Bytes("half", 1, 10)
	s.shows(t, "half")
	p.Step("unpacking")
	done := make(chan struct{})
	go func() { p.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	s.shows(t, "unpacking")
	terminal.Close()
	<-s.ended
}

func TestPrinterTerminalStepsOnly(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	p := NewPrinter(terminal)
	p.Step("one")
	shown := make([]byte, 3)
	if _, err := io.ReadFull(master, shown); err != nil || string(shown) != "one" {
		t.Errorf("%q, %v", shown, err)
	}
	p.Close()
	terminal.Close()
}
