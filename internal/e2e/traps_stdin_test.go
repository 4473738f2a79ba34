package e2e

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// Without pipeStdin standard input is /dev/null.
func TestTrap17NobodyWaitsForInput(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c, err := h.spawn(nil, "cat")
		if err != nil {
			t.Fatal(err)
		}
		wait(t, c.closed, "cat")
		if c.code != 0 || c.out.Len() > 0 {
			t.Errorf("exit %d, output %q", c.code, c.out.String())
		}
		if status := h.write(id, "1", "x"); status != "stdinClosed" {
			t.Errorf("a write to it is %s", status)
		}
	})
}

// The end of the input of exec-server run reaches the command, behind all that
// came before. The protocol has no such thing: a harness ends the command. Our
// own process/closeStdin is unknown to harnesses; TestTheEndOfInputLosesNothing
// of internal/process has the rest.
func TestTrap18EndOfInput(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c := h.script(withStdin, "cat; echo end")
		for i, text := range []string{"a", "b\n", "c\n"} {
			if status := h.write(id, string(rune('0'+i)), text); status != "accepted" {
				t.Errorf("write %d is %s", i, status)
			}
		}
		_, err := h.call("process/closeStdin", map[string]any{"processId": id})
		if got := refused(err); got != "-32601 exec-server stub does not implement `process/closeStdin` yet" {
			t.Errorf("process/closeStdin: %s", got)
		}
		wait(t, c.prints, "its output")
		if !h.terminate(id) {
			t.Error("it has ended by itself")
		}
		wait(t, c.closed, "its end")
		if c.code != 137 || !strings.HasPrefix("ab\nc\n", c.out.String()) {
			t.Errorf("exit %d, output %q", c.code, c.out.String())
		}
	})
	p := inContainer(t, "")
	input := strings.Repeat("0123456789abcde\n", 20000)
	out, stderr, code := cli(t, input, "--config", p.root.config, "run", "--", "wc", "-c")
	if strings.TrimSpace(out) != "320000" || code != 0 {
		t.Errorf("wc says %q, %q, exit %d", out, stderr, code)
	}
}

// A command that ends while its input is open has ended.
func TestTrap19InputLeftOpen(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		if out, code := h.finish(withStdin, "echo hi"); out != "hi\n" || code != 0 {
			t.Errorf("it printed %q, exit %d", out, code)
		}
		id, c := h.script(withStdin, "echo up; exec sleep 1000") // reads nothing
		wait(t, c.prints, "its output")
		h.write(id, "1", strings.Repeat("x", 100000))
		h.terminate(id)
		wait(t, c.closed, "the end of one with input unread")
	})
	p := inContainer(t, "")
	cmd := exec.Command(bin, "--config", p.root.config, "run", "--", "echo", "hi")
	in, err := cmd.StdinPipe() // stays open
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || string(text) != "hi\n" {
		t.Errorf("run with its input open: %v, %q", err, text)
	}
}

// On a terminal ^D is the end.
func TestTrap20EndOfInputOnATerminal(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c := h.script(onTerminal, "echo up; cat; echo end")
		wait(t, c.prints, "its output")
		if h.must("process/read", map[string]any{"processId": id}).Get("exited").Kind == proto.True {
			t.Error("it ended without input")
		}
		h.write(id, "1", "\x04")
		wait(t, c.closed, "its end")
		if got := c.out.String(); !strings.HasPrefix(got, "up\r\n") || !strings.HasSuffix(got, "end\r\n") || c.code != 0 {
			t.Errorf("exit %d, output %q", c.code, got)
		}
	})
}

// A repeated write is applied once, across connections too.
func TestTrap22RepeatedWrite(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		way, cable := throughFragile(t, p.server)
		h := way.connect("/", "")
		id, c := h.script(withStdin, "echo up; while read x; do echo got $x; test $x = end && exit 0; done")
		wait(t, c.prints, "its output")
		for range 3 {
			if status := h.write(id, "1", "one\n"); status != "accepted" {
				t.Errorf("the write is %s", status)
			}
		}
		cable.cut()
		again := p.resume(h.session)
		rest := again.proc(id)
		for _, w := range [][2]string{{"1", "one\n"}, {"2", "two\n"}, {"1", "one\n"}, {"2", "other\n"}, {"3", "end\n"}, {"3", "end\n"}} {
			if status := again.write(id, w[0], w[1]); status != "accepted" {
				t.Errorf("write %s is %s", w[0], status)
			}
		}
		wait(t, rest.closed, "its end")
		read := again.must("process/read", map[string]any{"processId": id})
		if got := chunksOf(t, read); got != "up\ngot one\ngot two\ngot end\n" {
			t.Errorf("it read %q", got)
		}
		if status := again.write(id, "3", "end\n"); status != "accepted" {
			t.Errorf("after the end the repeated write is %s", status)
		}
	})
}

// Without a terminal there is none to ask for a password on.
func TestTrap23NoTerminalToAsk(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		out, code := h.finish(nil, "read x </dev/tty && echo read")
		if code == 0 || strings.Contains(out, "read\n") || !strings.Contains(out, "No such device or address") {
			t.Errorf("exit %d, %q", code, out)
		}
	})
}
