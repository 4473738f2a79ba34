package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

// The last slave's closing makes reading a master fail, on Linux; that is the
// end, and no error.
func TestTrap36EndOfATerminal(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		before := len(p.logs.String())
		for range 20 {
			id, c := h.script(onTerminal, "true")
			wait(t, c.closed, "true")
			if c.code != 0 || c.seq != 2 {
				t.Errorf("exit %d, closed is event %d", c.code, c.seq)
			}
			if read := h.must("process/read", map[string]any{"processId": id}); read.Get("failure").Kind != proto.Null {
				t.Errorf("failure: %s", read.Get("failure").Str())
			}
		}
		if log := p.logs.String()[before:]; strings.Contains(log, `"level":"error"`) || strings.Contains(log, `"level":"warn"`) {
			t.Errorf("the log: %s", log)
		}
	})
}

func TestTrap37TerminalOutputIsWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		var want bytes.Buffer
		for i := range 200000 {
			fmt.Fprintf(&want, "%d\r\n", i+1)
		}
		out, code := p.connect("/", "").finish(onTerminal, "seq 1 200000")
		if code != 0 || out != want.String() {
			t.Errorf("exit %d, %d bytes, want %d", code, len(out), want.Len())
		}
	})
}

// A command that ends right behind its output loses none of it on a terminal.
func TestTrap38TailOnATerminal(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		want := strings.Repeat("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 400)
		for range scale(t, 300, 5000) {
			_, c, err := h.spawn(onTerminal, "printf", "%s", want)
			if err != nil {
				t.Fatal(err)
			}
			wait(t, c.closed, "printf")
			if got := c.out.String(); got != want {
				t.Fatalf("%d bytes of %d, the last are %q", len(got), len(want), got[max(0, len(got)-10):])
			}
		}
	})
}

// The terminal controls the command whatever is asked for standard input.
func TestTrap39ControllingTerminal(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for _, piped := range []bool{false, true} {
			id, c := h.script(map[string]any{"tty": true, "pipeStdin": piped}, "for i in 0 1 2; do test -t $i || echo no; done; echo up >/dev/tty; read x; echo got $x")
			wait(t, c.prints, "its output")
			h.write(id, "1", "in\n")
			wait(t, c.closed, "its end")
			if got := c.out.String(); got != "up\r\nin\r\ngot in\r\n" {
				t.Errorf("pipeStdin %v: it printed %q", piped, got)
			}
		}
	})
}

// A harness that does not read holds up its own commands and nobody else's. Only
// one can be attached to a session, so that two cannot watch the same command.
func TestTrap42StalledHarness(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		stalled, quick := p.connect("/", ""), p.connect("/", "")
		first, release := make(chan struct{}), make(chan struct{})
		id := fmt.Sprint("p", serial.Add(1))
		var taken atomic.Int64
		slow := stalled.watch(id, func(e event) {
			if taken.Load() == 0 {
				close(first)
				<-release
			}
			taken.Add(int64(len(e.data)))
		})
		const size = 20_000_000
		if err := stalled.spawnAs(id, nil, "head", "-c", fmt.Sprint(size), "/dev/zero"); err != nil {
			t.Fatal(err)
		}
		wait(t, first, "the slow one's first output")
		for range 30 {
			if out, code := quick.finish(nil, "head -c 100000 /dev/zero; exit 3"); len(out) != 100000 || code != 3 {
				t.Fatalf("exit %d, %d bytes", code, len(out))
			}
		}
		select {
		case <-slow.exited:
			t.Error("the stalled command has ended")
		default:
		}
		close(release)
		wait(t, slow.closed, "the slow one")
		if taken.Load() != size {
			t.Errorf("the slow one got %d bytes", taken.Load())
		}
	})
}

// Output is bytes: nothing is decoded, wherever it is cut.
func TestTrap43BytesAreNotText(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		script := `for b in 360 237 230 200; do printf "\\$b"; sleep 0.05; done; `
		want := "\xf0\x9f\x98\x80"
		for b := 0x80; b < 0x100; b++ {
			script += fmt.Sprintf(`printf '\%o'; `, b)
			want += string([]byte{byte(b)})
		}
		script += `printf '\0\r\n\177'`
		want += "\x00\r\n\x7f"
		for _, more := range []map[string]any{nil, onTerminal} {
			id, c := h.script(more, "stty raw 2>/dev/null; "+script)
			wait(t, c.closed, "its end")
			if got := c.out.String(); got != want {
				t.Errorf("%v: it is %q", more, got)
			}
			read := h.must("process/read", map[string]any{"processId": id})
			if got := chunksOf(t, read); got != want || read.Get("chunks").Len() < 2 {
				t.Errorf("%v: it is read as %q, %d chunks", more, got, read.Get("chunks").Len())
			}
		}
		id, c := h.script(withStdin, "exec cat")
		all := ""
		for b := range 256 {
			all += string([]byte{byte(b)})
		}
		h.write(id, "1", all)
		eventually(t, "the echo", func() bool {
			return chunksOf(t, h.must("process/read", map[string]any{"processId": id})) == all
		})
		h.terminate(id)
		wait(t, c.closed, "cat")
	})
}
