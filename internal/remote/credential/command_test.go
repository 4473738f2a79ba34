package credential

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestCommand(t *testing.T) {
	s := must(t)(Command(shell("cat; echo ' tok '")))
	if got := shown(t, s); got != "Bearer tok" {
		t.Error(got)
	}
	allow(t, s, "https://h.test", true)
	allow(t, s, "http://h.test", false)
	for _, argv := range [][]string{nil, {}, {""}} {
		if _, err := Command(argv); err == nil {
			t.Errorf("%q: no error", argv)
		}
	}
}

func TestCommandsThatFail(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"status":         {"echo first >&2; echo the last line >&2; exit 3", "exit status 3"},
		"no words":       {"exit 4", "exit status 4"},
		"token told":     {"echo no hunter2 here >&2; exit 3", "exit status 3"},
		"no token":       {":", "it printed nothing"},
		"two words":      {"echo hunter 2", "blanks"},
		"much":           {"yes hunter2 | tr -d '\\n' | head -c 1000000", "more than 16384 bytes"},
		"many words":     {"yes hunter3 | head -c 1000000 >&2; exit 5", "exit status 5"},
		"control":        {`printf 'a\033[31m\rb\n' >&2; exit 6`, "exit status 6"},
		"killed":         {"kill -9 $$", "killed"},
		"does not exist": {"exec /does/not/exist", "exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			text := wantUnavailable(t, must(t)(Command(shell(tt.script))))
			if strings.Contains(tt.want, "exit status") && !strings.HasSuffix(text, tt.want) {
				t.Errorf("there is more than the status in %.2000q", text)
			}
			if !strings.Contains(text, tt.want) || strings.Contains(text, "hunter2") || len(text) > 1000 {
				t.Errorf("got %.2000q, want %q", text, tt.want)
			}
		})
	}
	if text := wantUnavailable(t, must(t)(Command([]string{"/does/not/exist"}))); !strings.Contains(text, "no such file") {
		t.Error(text)
	}
}

func TestCommandTakesTooLong(t *testing.T) {
	_, err := runCommand(t.Context(), shell("exec sleep 1000"), 50*time.Millisecond)
	if err == nil || err.Error() != "it took more than 50ms" {
		t.Error(err)
	}
}

// TestCommandIsKilled has a program that has started another.
func TestCommandIsKilled(t *testing.T) {
	file := t.TempDir() + "/pid"
	ctx, cancel := context.WithCancel(t.Context())
	var child int
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			text, _ := os.ReadFile(file)
			if line, ok := strings.CutSuffix(string(text), "\n"); ok {
				child, _ = strconv.Atoi(line)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := runCommand(ctx, shell("sleep 1000 & echo $! > "+file+"; sleep 1000"), time.Minute); !errors.Is(err, context.Canceled) || child == 0 {
		t.Fatal(child, err)
	}
	for syscall.Kill(child, 0) == nil { // until whoever inherits it has reaped it
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCommandLeavesSomething(t *testing.T) {
	token, err := runCommand(t.Context(), shell("sleep 3 & echo tok"), time.Minute)
	if err != nil || token.Reveal() != "tok" {
		t.Errorf("got %q, %v", token.Reveal(), err)
	}
}

func TestCommandIsGivenUp(t *testing.T) {
	s := must(t)(Command(shell("exec sleep 1000")))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
	if err := s.Authorize(ctx, request(t, "http://127.0.0.1/"), nil); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestCommandRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var fails error
		s := must(t)(Command([]string{"x"}))
		s.(*command).run = func(context.Context) (Secret, error) {
			runs++
			return NewSecret("tok" + strconv.Itoa(runs)), fails
		}
		step := func(wait time.Duration, want string) {
			t.Helper()
			time.Sleep(wait)
			if got := shown(t, s); got != "Bearer "+want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		refused := s.(Refresher).Refused
		step(0, "tok1")
		step(commandKeep-time.Second, "tok1")
		step(time.Second, "tok2")
		refused()
		step(commandPause-time.Second, "tok2") // not twice within a minute
		step(time.Second, "tok3")
		step(commandKeep-time.Second, "tok3")
		fails = errors.New("no more")
		step(time.Second, "tok3") // it was not refused
		if runs != 4 {
			t.Errorf("%d runs", runs)
		}
		step(commandPause, "tok3")
		refused()
		if text := wantUnavailable(t, s); !strings.Contains(text, "no more") || runs != 5 {
			t.Error(text, runs)
		}
		fails = nil
		step(commandPause, "tok6")
	})
}
