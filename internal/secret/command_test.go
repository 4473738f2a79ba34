package secret

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

func TestCommandTakesTooLong(t *testing.T) {
	_, err := runCommand(t.Context(), shell("exec sleep 1000"), Token, 50*time.Millisecond)
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
	if _, err := runCommand(ctx, shell("sleep 1000 & echo $! > "+file+"; sleep 1000"), Token, time.Minute); !errors.Is(err, context.Canceled) || child == 0 {
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
	token, err := runCommand(t.Context(), shell("sleep 3 & echo tok"), Token, time.Minute)
	if err != nil || token.Reveal() != "tok" {
		t.Errorf("got %q, %v", token.Reveal(), err)
	}
}

func TestCommandRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var fails error
		c := NewCommand([]string{"x"}, Token)
		c.run = func(context.Context) (Secret, error) {
			runs++
			return New("tok" + strconv.Itoa(runs)), fails
		}
		step := func(wait time.Duration, want string) {
			t.Helper()
			time.Sleep(wait)
			if got, err := c.Get(t.Context()); err != nil || got.Reveal() != want {
				t.Errorf("got %s, %v, want %s", got.Reveal(), err, want)
			}
		}
		refused := c.Refused
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
		step(failurePause-time.Second, "tok3") // not at once either
		step(time.Second, "tok3")
		refused()
		if got, err := c.Get(t.Context()); err != fails || !got.IsZero() || runs != 5 {
			t.Error(err, runs)
		}
		fails = nil
		step(failurePause, "tok6")
		refused()
		step(commandPause-time.Second, "tok6")
	})
}
