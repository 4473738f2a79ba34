package network

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// alive tells whether an echo's connection moves bytes.
func alive(t *testing.T, c *net.TCPConn) bool {
	t.Helper()
	if _, err := c.Write([]byte("!")); err != nil {
		return false
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err == nil
}

func TestSet(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34", "1.1.1.1"))
	r.serveAt("93.184.216.34:7", echo)
	r.serveAt("1.1.1.1:7", echo)
	one, two := r.must("93.184.216.34:7"), r.must("1.1.1.1:7")
	if !alive(t, one) || !alive(t, two) {
		t.Fatal("not open")
	}
	if err := r.Set(allowing("not an address!"), true); err == nil {
		t.Error("an invalid policy is set")
	}
	if err := r.Set(allowing("1.1.1.1"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.program("93.184.216.34:7"); err == nil {
		t.Error("a new connection is made")
	}
	if !alive(t, one) {
		t.Error("an open connection is closed, and nobody has asked for that")
	}
	if err := r.Set(allowing("1.1.1.1"), true); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, one); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("an open connection that is denied: %v", err)
	}
	if !alive(t, two) {
		t.Error("an open connection that is allowed is closed")
	}
	if got := r.Policy().Rules[0].Allow; len(got) != 1 || got[0] != "1.1.1.1" {
		t.Errorf("the policy is %v", got)
	}
	if err := r.Set(rules.Policy{Mode: rules.None}, true); err != nil {
		t.Fatal(err)
	}
	if alive(t, two) {
		t.Error("a connection is open in mode none")
	}
	if _, err := r.program("1.1.1.1:7"); err == nil {
		t.Error("a new connection is made in mode none")
	}
}

// Connections by name end with the rule of their name.
func TestSetClosesByName(t *testing.T) {
	r := web(t, named, "one.test", "a.more.test")
	open := map[string]*net.TCPConn{}
	for _, name := range []string{"one.test", "a.more.test"} {
		c := r.must("93.184.216.34:443")
		hello := clientHello(t, name)
		_, _ = c.Write(hello)
		if _, err := io.ReadFull(c, hello); err != nil {
			t.Fatal(err)
		}
		open[name] = c
	}
	if err := r.Set(rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: []string{"one.test"}}}}, true); err != nil {
		t.Fatal(err)
	}
	if !alive(t, open["one.test"]) || alive(t, open["a.more.test"]) {
		t.Error("closed the wrong one")
	}
}

// What waits when the policy changes is decided anew.
func TestSetWhileConnecting(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	r.serveAt("93.184.216.34:7", echo)
	r.pause = make(chan struct{})
	go func() {
		for len(r.dials()) == 0 {
			continue
		}
		_ = r.Set(allowing("1.1.1.1"), false)
		close(r.pause)
	}()
	c, err := r.program("93.184.216.34:7")
	if err == nil && alive(t, c) {
		t.Error("it passes")
	}
	if d := r.Stats().Denied[rules.ByMode]; d != 1 {
		t.Errorf("denied %d", d)
	}
}

func TestModeNoneIsSetUpLater(t *testing.T) {
	r := newRig(t, rules.Policy{Mode: rules.None})
	r.serveAt("93.184.216.34:7", echo)
	if r.listener != nil {
		t.Fatal("set up in mode none")
	}
	broken := r.setUp
	r.setUp = func() (closer, error) { return nil, errors.New("no way") }
	if err := r.Set(allowing("93.184.216.34"), false); err == nil || !strings.Contains(err.Error(), "no way") || r.Policy().Mode != rules.None {
		t.Errorf("%v, %+v", err, r.Policy())
	}
	r.setUp = broken
	if err := r.Set(allowing("93.184.216.34"), false); err != nil {
		t.Fatal(err)
	}
	if got, err := say(t, r.must("93.184.216.34:7"), "x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	p := allowing("93.184.216.34")
	p.Connections = 1
	r := newRig(t, p)
	r.serveAt("93.184.216.34:7", echo)
	c := r.must("93.184.216.34:7")
	if !alive(t, c) {
		t.Error("not open")
	}
	if _, err := r.program("93.184.216.34:7"); err == nil || err.Error() != "refused" {
		t.Errorf("a second connection: %v", err)
	}
	p.Connections, p.ConnectionsPerSecond = 0, 1
	if err := r.Set(p, false); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 100 { // a slow machine makes one in a second
		if _, err = r.program("93.184.216.34:7"); err != nil {
			break
		}
	}
	if err == nil || err.Error() != "dropped" {
		t.Errorf("a second connection in a second: %v", err)
	}
	p.ConnectionsPerSecond, p.Bytes = 0, 1
	if err := r.Set(p, false); err != nil {
		t.Fatal(err)
	}
	if alive(t, c) {
		t.Error("bytes pass when the volume is used up")
	}
	if _, err := r.program("93.184.216.34:7"); err == nil || err.Error() != "refused" {
		t.Errorf("a connection when the volume is used up: %v", err)
	}
	// What is cut is counted when that is done.
	r.eventually(t, func(s Stats) bool { return s.Denied[rules.TooMany] == 2 && s.Denied[rules.TooMuch] == 2 })
}

func TestClose(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	r.serveAt("93.184.216.34:7", echo)
	open := r.must("93.184.216.34:7")
	if !alive(t, open) {
		t.Fatal("not open")
	}
	r.mu.Lock()
	r.pause = make(chan struct{})
	r.mu.Unlock()
	hangs := make(chan error, 1)
	go func() {
		_, err := r.program("93.184.216.34:7")
		hangs <- err
	}()
	for len(r.dials()) < 2 {
		continue
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-hangs; err == nil || err.Error() != "dropped" {
		t.Errorf("what was in the making: %v", err)
	}
	if alive(t, open) {
		t.Error("a connection is open still")
	}
	p := make(packet, 1)
	r.first(key{}, p)
	if v := <-p; v != "dropped" {
		t.Errorf("a packet after the end is %s", v)
	}
	if err := r.Set(allowing("1.1.1.1"), false); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Set after the end: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
