package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// A background child that holds the pipe open does not hold up the news of its
// parent's end. By the protocol process/closed waits for the end of every stream
// however long that takes, since late output is output: there is no time after
// which it would be lost.
func TestTrap01GrandchildHoldsOutput(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c := h.script(nil, "while [ ! -e "+p.dir+"/gate ]; do sleep 0.02; done && echo late & echo ok")
		wait(t, c.exited, "the command whose child holds its output")
		read := h.must("process/read", map[string]any{"processId": id, "afterSeq": 1})
		if read.Get("closed").Kind == proto.True || read.Get("exited").Kind != proto.True {
			t.Errorf("it exited, closed is %s while its child lives", read.Get("closed").Raw())
		}
		h.must("fs/writeFile", map[string]any{"path": p.uri("gate"), "dataBase64": ""})
		wait(t, c.closed, "the end of its child")
		if got := c.out.String(); got != "ok\nlate\n" {
			t.Errorf("it printed %q", got)
		}
	})
}

// Terminate kills what a command left in its group, so that nothing piles up. If
// the command had ended, terminate does nothing by the protocol, and what it left
// goes with the session.
func TestTrap03DescendantsPileUp(t *testing.T) {
	briefly(t, func(t *testing.T, p *place) {
		mark := marker()
		h := p.connect("/", "")
		var ids []string
		for i := range scale(t, 40, 200) {
			script := "sleep " + mark + " & sleep " + mark + " & echo; wait"
			if i%2 == 1 {
				script = "sleep " + mark + " & exit 0"
			}
			id, c := h.script(nil, script)
			if ids = append(ids, id); i%2 == 1 {
				wait(t, c.exited, "the parent")
			} else {
				wait(t, c.prints, "a sign of life")
			}
		}
		for i, id := range ids {
			if running := h.terminate(id); running != (i%2 == 0) {
				t.Errorf("terminate says %v", running)
			}
		}
		eventually(t, "what terminate killed", func() bool { return len(withMarker(t, mark)) == len(ids)/2 })
		_ = h.c.Close()
		eventually(t, "what the session left", func() bool { return len(withMarker(t, mark)) == 0 })
	})
}

// The order is output, exited, maybe more output, and closed, which has the
// last number and comes once.
func TestTrap04OrderOfTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for _, script := range []string{
			"true", "echo a; echo b >&2; exit 3", "echo a & exit 0", "(sleep 0.05; echo late) & echo soon", "kill -9 $$",
			"exec >&- 2>&-; sleep 0.05", "head -c 300000 /dev/zero",
		} {
			for _, more := range []map[string]any{nil, onTerminal} {
				var events []event
				id := fmt.Sprint("p", serial.Add(1))
				c := h.watch(id, func(e event) { events = append(events, e) })
				if err := h.spawnAs(id, more, "/bin/sh", "-c", script); err != nil {
					t.Fatal(err)
				}
				wait(t, c.closed, script)
				// Anything after the end would be numbered, and come before this.
				h.must("environment/status", nil)
				kinds := ""
				for i, e := range events {
					if e.seq != uint64(i+1) {
						t.Errorf("%s: event %d has number %d", script, i, e.seq)
					}
					kinds += e.stream[:1]
				}
				_, after, found := strings.Cut(kinds, "e") // exited
				if !found || strings.Count(kinds, "e") != 1 || strings.Count(kinds, "c") != 1 || !strings.HasSuffix(after, "c") {
					t.Errorf("%s, %v: the order is %s", script, more, kinds)
				}
			}
		}
	})
}

// What is printed right before the end arrives, and stays to be read.
func TestTrap05TailBeforeTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		data := make([]byte, 64<<10)
		for i := range data {
			data[i] = byte(i>>8) ^ byte(i)
		}
		h.must("fs/writeFile", map[string]any{"path": p.uri("f"), "dataBase64": base64Of(string(data))})
		n := scale(t, 150, 10000)
		next := make(chan struct{}, n)
		for range n {
			next <- struct{}{}
		}
		close(next)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				h := p.connect("/", "")
				for range next {
					id, c, err := h.spawn(nil, "cat", p.dir+"/f")
					if err != nil {
						t.Error(err)
						return
					}
					wait(t, c.closed, "cat")
					if !bytes.Equal(c.out.Bytes(), data) {
						t.Errorf("%d bytes arrived", c.out.Len())
					}
					read, err := h.call("process/read", map[string]any{"processId": id})
					if got := chunksOf(t, read); err != nil || got != string(data) {
						t.Errorf("%d bytes were read, %v", len(got), err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// While a command is held open by its child, others go on.
func TestTrap06HeldCommandHoldsUpNobody(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		mark := marker()
		id, held := h.script(nil, "sleep "+mark+" & echo ok")
		wait(t, held.exited, "the command")
		for range 10 {
			other := p.connect("/", "")
			id, c := other.script(nil, "echo up; sleep 1000")
			wait(t, c.prints, "a command of another session")
			if !other.terminate(id) {
				t.Error("it was not running")
			}
			wait(t, c.closed, "its end")
		}
		if read := h.must("process/read", map[string]any{"processId": id, "afterSeq": 1}); read.Get("closed").Kind == proto.True {
			t.Error("the first command was not held open")
		}
		kill(withMarker(t, mark))
		wait(t, held.closed, "the first command")
	})
}

// A start that fails leaves nothing, on a terminal least of all.
func TestTrap08FailedStartLeaks(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		threads := func() int {
			all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid()))
			return len(all)
		}
		h.sh("true")
		files, before := p.files(), threads()
		for i := range 200 {
			if _, _, err := h.spawn(map[string]any{"tty": i%2 == 0, "pipeStdin": i%4 == 1}, "/no/such/program"); !strings.HasSuffix(refused(err), "[spawnNotFound]") {
				t.Fatal(refused(err))
			}
		}
		for range 20 {
			h.finish(onTerminal, "true")
		}
		eventually(t, "the descriptors", func() bool { return p.files() <= files })
		if now := threads(); now > before+20 {
			t.Errorf("%d threads before, %d after", before, now)
		}
	})
}

// Exit codes are exact. A program that is not there or cannot be executed is an
// error of the start, by the protocol, with the system's words and a kind;
// exec-server run makes the shell's 127 and 126 of them, with the reason on
// standard error (TestRun).
func TestTrap09ExitCodes(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for _, test := range []struct {
			script    string
			code, tty int
		}{
			{"exit 0", 0, 0}, {"exit 1", 1, 1}, {"exit 2", 2, 2}, {"exit 126", 126, 126}, {"exit 255", 255, 255}, {"exit 256", 0, 0},
			{"/no/such/program", 127, 127}, {"/etc/passwd", 126, 126},
			{"kill -HUP $$", 129, 1}, {"kill -INT $$", 130, 1}, {"kill -ABRT $$", 134, 1}, {"kill -KILL $$", 137, 1},
			{"kill -SEGV $$", 139, 1}, {"kill -PIPE $$", 141, 1}, {"kill -TERM $$", 143, 1}, {"kill -64 $$", 192, 1},
		} {
			if _, code := h.finish(nil, "ulimit -c 0; "+test.script); code != test.code {
				t.Errorf("%s exits with %d, want %d", test.script, code, test.code)
			}
			if _, code := h.finish(onTerminal, "ulimit -c 0; "+test.script); code != test.tty {
				t.Errorf("%s on a terminal exits with %d, want %d", test.script, code, test.tty)
			}
		}
		out, _ := h.finish(nil, "/no/such/program")
		if !strings.Contains(out, "not found") {
			t.Errorf("the shell's reason is %q", out)
		}
		for program, want := range map[string]string{
			"/no/such/program": "-32603 No such file or directory (os error 2) [spawnNotFound]",
			"no-such-program":  "-32603 No such file or directory (os error 2) [spawnNotFound]",
			"/etc/passwd":      "-32603 Permission denied (os error 13) [spawnPermissionDenied]",
			"/etc":             "-32603 Permission denied (os error 13) [spawnPermissionDenied]",
		} {
			if _, _, err := h.spawn(nil, program); refused(err) != want {
				t.Errorf("%s is refused with %s", program, refused(err))
			}
		}
	})
}

// Arguments reach the program as they are, here-documents too.
func TestTrap10ArgumentsAreLeftAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		if out, code := h.finish(nil, "cat <<'EOF'\n  a\n\tb $x `y` \\\nEOF\n"); out != "  a\n\tb $x `y` \\\n" || code != 0 {
			t.Errorf("the here-document is %q, exit %d", out, code)
		}
		odd := []string{"", " ", "\n", "$HOME", "'", `"\`, "é\xff"[:2], "-n", "*", strings.Repeat("x", 100000)}
		_, c, err := h.spawn(nil, append([]string{"/bin/sh", "-c", `for a; do printf '%s\0' "$a"; done`, "sh"}, odd...)...)
		if err != nil {
			t.Fatal(err)
		}
		wait(t, c.closed, "the arguments")
		if got := c.out.String(); got != strings.Join(odd, "\x00")+"\x00" {
			t.Errorf("the arguments are %.200q", got)
		}
	})
}

// There is no shell of ours around a command that its set -e or exec could end.
func TestTrap11NoWrapperShell(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for script, want := range map[string]int{
			"set -e; false": 1, "set -e; (exit 7); exit 0": 7, "exec /bin/true": 0, "exec sh -c 'exit 5'": 5, "trap 'exit 4' EXIT; exit 1": 4,
		} {
			if _, code := h.finish(nil, script); code != want {
				t.Errorf("%s exits with %d, want %d", script, code, want)
			}
		}
		pid := fmt.Sprintln(p.pid())
		if p.root != nil {
			pid = "1\n"
		}
		if out, _ := h.finish(nil, "echo $PPID"); out != pid {
			t.Errorf("a command's parent is %q, not the server, %q", out, pid)
		}
	})
}

// Much output in one go arrives whole.
func TestTrap13MuchOutput(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		const line = "a line of some 40 characters, over and over\n"
		size := scale(t, 12, 200) << 20
		want := sha256.New()
		for left := size; left > 0; {
			n, _ := want.Write([]byte(line)[:min(left, len(line))])
			left -= n
		}
		h.must("fs/writeFile", map[string]any{"path": p.uri("lines"), "dataBase64": base64Of(strings.Repeat(line, 20000))})
		script := "while cat " + p.dir + "/lines; do :; done 2>/dev/null | head -c " + fmt.Sprint(size)
		sums := map[string]hash.Hash{"stdout": sha256.New()}
		id := fmt.Sprint("p", serial.Add(1))
		c := h.watch(id, func(e event) {
			if sum := sums[e.stream]; sum != nil {
				sum.Write(e.data)
			} else if e.data != nil {
				t.Errorf("%s: %q", e.stream, e.data)
			}
		})
		if err := h.spawnAs(id, nil, "/bin/sh", "-c", script); err != nil {
			t.Fatal(err)
		}
		wait(t, c.closed, "the output")
		if got := sums["stdout"].Sum(nil); !bytes.Equal(got, want.Sum(nil)) {
			t.Errorf("the digest is %x, want %x", got, want.Sum(nil))
		}
		// And as the command itself saw it.
		if out, _ := h.finish(nil, script+" | sha256sum"); !strings.HasPrefix(out, fmt.Sprintf("%x ", want.Sum(nil))) {
			t.Errorf("inside the digest is %s, want %x", out, want.Sum(nil))
		}
	})
}

// Harnesses that vanish while their commands print leave nothing, and harm
// nobody else's.
func TestTrap14HarnessesVanish(t *testing.T) {
	briefly(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		const steps = 200
		_, steady := h.script(nil, "i=0; while [ $i -lt "+fmt.Sprint(steps)+" ]; do i=$((i+1)); echo $i; sleep 0.01; done")
		wait(t, steady.prints, "the steady command")
		files := p.files()
		mark := marker()
		var wg sync.WaitGroup
		each := scale(t, 4, 10)
		for range 10 {
			wg.Go(func() {
				for range each {
					way, cable := throughFragile(t, p.server)
					gone, err := way.tryConnect("/", "")
					if err != nil {
						t.Error(err)
						return
					}
					_, c, err := gone.spawn(nil, "/bin/sh", "-c", "sleep "+mark+" & cat /dev/zero")
					if err != nil {
						t.Error(err)
						return
					}
					wait(t, c.prints, "the flood")
					cable.cut()
				}
			})
		}
		wg.Wait()
		wait(t, steady.closed, "the steady command")
		if lines := strings.Fields(steady.out.String()); len(lines) != steps || lines[steps-1] != fmt.Sprint(steps) {
			t.Errorf("the steady command printed %d lines", len(lines))
		}
		eventually(t, "the commands of those that vanished", func() bool { return len(withMarker(t, mark)) == 0 })
		eventually(t, "their descriptors", func() bool { return p.files() <= files })
	})
}

// A session can be taken up for as long as is configured, then that is said.
// That it is so for minutes is TestTrap15ResumeAfterMinutes of internal/agent.
func TestTrap15ResumeInTimeAndTooLate(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		way, cable := throughFragile(t, p.server)
		h := way.connect("/", "")
		id, c := h.script(withStdin, "echo one; read x; echo $x")
		wait(t, c.prints, "its output")
		cable.cut()
		again := p.resume(h.session)
		read := again.must("process/read", map[string]any{"processId": id, "afterSeq": 0})
		if got := chunksOf(t, read); got != "one\n" || read.Get("exited").Kind == proto.True {
			t.Errorf("after the resume there is %q", got)
		}
		rest := again.proc(id)
		again.write(id, "1", "two\n")
		wait(t, rest.closed, "the rest")
		if got := rest.out.String(); got != "two\n" {
			t.Errorf("the rest is %q", got)
		}
	})
	briefly(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for {
			_ = h.c.Close()
			time.Sleep(3 * time.Second)
			again, err := p.tryConnect("/", h.session)
			if err == nil { // three seconds were less than one on this machine
				h = again
				continue
			}
			if refused(err) != "-32600 unknown session id "+h.session {
				t.Error(refused(err))
			}
			return
		}
	})
}
