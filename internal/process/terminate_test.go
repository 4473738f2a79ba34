package process

import (
	"os"
	"testing"
)

// holdsOpen returns the path of a fifo and a channel that is closed when nobody
// has the fifo open for writing any more.
func holdsOpen(t *testing.T) (path string, gone <-chan struct{}) {
	t.Helper()
	path = string(newGate(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if f, err := os.Open(path); err == nil {
			_, _ = f.Read(make([]byte, 1))
			_ = f.Close()
		}
	}()
	return path, done
}

func TestTerminateKillsTheGroup(t *testing.T) {
	for _, tty := range []bool{false, true} {
		path, gone := holdsOpen(t)
		spec := sh("trap '' TERM HUP INT; exec 3>" + path + "; sleep 1000 & echo up; wait")
		spec.TTY = tty
		c := start(t, spec)
		c.awaitOutput(t, "up")
		if !c.p.Terminate() {
			t.Error("it was not running")
		}
		want := 137
		if tty {
			want = 1
		}
		if _, code := c.wait(t); code != want {
			t.Errorf("tty %v: exit code %d", tty, code)
		}
		<-gone
		if c.p.Terminate() {
			t.Error("it is running after its end")
		}
	}
}

func TestTerminateGivesStreamsUp(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("setsid sh -c 'echo up; : <"+string(g)+"; echo late' & wait; sleep 1000"))
	c.awaitOutput(t, "up")
	if !c.p.Terminate() {
		t.Error("it was not running")
	}
	events, code := c.wait(t) // although the survivor holds the streams
	if code != 137 || string(output(events, "")) != "up\n" {
		t.Errorf("exit code %d, output %q", code, output(events, ""))
	}
	g.open(t) // it does survive
}

func TestTerminateOfAnExitedCommandChangesNothing(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("{ : <"+string(g)+"; echo late; } & exit 0"))
	c.awaitExit(t)
	if c.p.Terminate() {
		t.Error("it was running")
	}
	g.open(t)
	if events, code := c.wait(t); code != 0 || string(output(events, "")) != "late\n" {
		t.Errorf("exit code %d, output %q", code, output(events, ""))
	}
}

func TestAbandonGivesStreamsUpAfterTheExitToo(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("setsid sh -c 'echo away; : <"+string(g)+"' & exit 0"))
	c.awaitOutput(t, "away")
	c.awaitExit(t)
	c.p.Abandon()
	c.wait(t)
	g.open(t)
}

func TestInterruptGoesToTheGroup(t *testing.T) {
	for _, tty := range []bool{false, true} {
		path, gone := holdsOpen(t)
		spec := sh("exec 3>" + path + "; echo up; sleep 1000; echo not reached")
		spec.TTY = tty
		c := start(t, spec)
		c.awaitOutput(t, "up")
		c.repeat(c.p.Interrupt)
		want := 130
		if tty {
			want = 1
		}
		if events, code := c.wait(t); code != want {
			t.Errorf("tty %v: exit code %d, output %q", tty, code, output(events, ""))
		}
		<-gone
		c.p.Interrupt() // nobody is there: nothing happens
	}
}

func TestInterruptCanBeCaught(t *testing.T) {
	c := start(t, sh("trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.05; done"))
	c.awaitOutput(t, "up")
	c.repeat(c.p.Interrupt)
	if events, code := c.wait(t); code != 7 || string(output(events, "")) != "up\ncaught\n" {
		t.Errorf("exit code %d, output %q", code, output(events, ""))
	}
}

func TestManyMayTerminateAtOnce(t *testing.T) {
	c := start(t, sh("sleep 1000"))
	done := make(chan struct{})
	for range 20 {
		go func() {
			c.p.Terminate()
			c.p.Interrupt()
			done <- struct{}{}
		}()
	}
	for range 20 {
		<-done
	}
	if _, code := c.wait(t); code != 137 && code != 130 {
		t.Errorf("exit code %d", code)
	}
}
