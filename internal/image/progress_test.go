package image

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func drive(p *Printer) {
	p.Step("pulling")
	for _, done := range []int64{0, 1 << 20, 2 << 20, 2 << 20} {
		p.Bytes("abc", done, 2<<20)
		p.Bytes("unknown", done, 0)
		time.Sleep(150 * time.Millisecond) // let the bars be drawn
	}
	p.Bytes("half", 1, 10)
	p.Step("unpacking")
	p.Close()
}

func TestPrinterPlain(t *testing.T) {
	var out bytes.Buffer
	drive(NewPrinter(&out))
	if want := "pulling\nabc: 2.0MiB\nunpacking\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
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
	read := make(chan string)
	go func() {
		out, _ := io.ReadAll(master) // ends with EIO when the terminal is closed
		read <- string(out)
	}()
	p := NewPrinter(terminal)
	done := make(chan struct{})
	go func() { drive(p); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	terminal.Close()
	out := <-read
	for _, want := range []string{"pulling", "unpacking", "abc", "1.0 MiB / 2.0 MiB", "2.0 MiB / 2.0 MiB", "half"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %q", want, out)
		}
	}
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
