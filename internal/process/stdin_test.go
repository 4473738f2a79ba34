package process

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func piped(script string) Spec {
	spec := sh(script)
	spec.PipeStdin = true
	return spec
}

func TestStandardInputIsEmptyByDefault(t *testing.T) {
	if got := prints(t, sh("cat; readlink /proc/self/fd/0")); got != "/dev/null\n" {
		t.Errorf("got %q", got)
	}
	c := start(t, sh("exit 0"))
	c.wait(t)
	if status, err := c.p.Write("1", []byte("x"), nil); status != "stdinClosed" || err != nil {
		t.Errorf("a write is %q, %v", status, err)
	}
}

func TestWritesArriveInTheirOrder(t *testing.T) {
	c := start(t, piped("exec cat"))
	var want []byte
	for i := range 300 {
		data := fmt.Appendf(nil, "%d:%s\n", i, bytes.Repeat([]byte{byte(i)}, i*i%30000))
		want = append(want, data...)
		c.write(t, itoa(i), data)
	}
	c.await(t, "all of it", func(events []event) bool { return len(output(events, "")) == len(want) })
	c.p.CloseStdin()
	if events, _ := c.wait(t); !bytes.Equal(output(events, ""), want) {
		t.Error("the bytes differ")
	}
}

func TestThereIsNoEndOfInputByItself(t *testing.T) {
	c := start(t, piped("cat >/dev/null; echo end"))
	c.write(t, "1", []byte("x"))
	if c.p.StdinFull() {
		t.Error("its input is full")
	}
	c.p.CloseStdin()
	c.awaitOutput(t, "end")
	if _, err := c.p.Write("2", nil, nil); proto.WireError(err).Message != "failed to write to process stdin" {
		t.Errorf("a write after the end of input: %v", err)
	}
}

func TestARepeatedWriteIsTakenOnce(t *testing.T) {
	c := start(t, piped("exec cat"))
	for range 3 {
		c.write(t, "same", []byte("once"))
	}
	c.write(t, "other", []byte("!"))
	c.p.CloseStdin()
	if events, _ := c.wait(t); string(output(events, "")) != "once!" {
		t.Errorf("got %q", output(events, ""))
	}
	c.write(t, "same", []byte("after the end"))
}

func TestTheLast4096WriteIDsAreRemembered(t *testing.T) {
	c := start(t, piped("exec cat"))
	c.write(t, "0", []byte("a"))
	for i := range 4096 {
		c.write(t, itoa(i+1), nil)
	}
	c.write(t, "1", []byte("remembered"))
	c.write(t, "0", []byte("b")) // forgotten
	c.write(t, "1", []byte("c")) // forgotten for it
	c.p.CloseStdin()
	if events, _ := c.wait(t); string(output(events, "")) != "abc" {
		t.Errorf("got %q", output(events, ""))
	}
}

// fill writes until a write would wait.
func fill(t *testing.T, c *command) (writes int) {
	t.Helper()
	for ; !c.p.StdinFull(); writes++ {
		if writes > 1000 {
			t.Fatal("the queue does not fill")
		}
		c.write(t, "fill"+itoa(writes), make([]byte, 64<<10))
	}
	return writes
}

func TestAFullQueueBlocksUntilTerminate(t *testing.T) {
	c := start(t, piped("sleep 1000"))
	if n := fill(t, c); n < maxQueued || n > maxQueued+3 {
		t.Errorf("%d writes were taken", n)
	}
	result := make(chan error)
	for i := range 3 {
		go func() {
			_, err := c.p.Write("more"+itoa(i), []byte("x"), nil)
			result <- err
		}()
	}
	canceled := make(chan struct{})
	close(canceled)
	if _, err := c.p.Write("canceled", []byte("x"), canceled); err == nil {
		t.Error("a write that was given up succeeded")
	}
	c.write(t, "fill0", nil) // a remembered id does not wait
	select {
	case err := <-result:
		t.Fatalf("a write into a full queue returned %v", err)
	default:
	}
	c.p.Terminate()
	for range 3 {
		if e := proto.WireError(<-result); e.Code != proto.CodeInternal || e.Message != "failed to write to process stdin" {
			t.Errorf("the write ended with %v", e)
		}
	}
	c.wait(t)
	if _, err := c.p.Write("new", nil, nil); err == nil {
		t.Error("a write after terminate succeeded")
	}
	c.write(t, "fill0", nil)
}

func TestAWaitingWriteGoesOnWhenTheCommandReads(t *testing.T) {
	g := newGate(t)
	c := start(t, piped(": <"+string(g)+"; wc -c"))
	n := fill(t, c)
	done := make(chan error)
	go func() {
		_, err := c.p.Write("last", []byte("x"), nil)
		done <- err
	}()
	g.open(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.p.CloseStdin()
	if events, _ := c.wait(t); string(bytes.TrimSpace(output(events, ""))) != itoa(n*64<<10+1) {
		t.Errorf("it read %s bytes", output(events, ""))
	}
}

// The end of input comes behind what was accepted before it.
func TestTheEndOfInputLosesNothing(t *testing.T) {
	g := newGate(t)
	c := start(t, piped(": <"+string(g)+"; wc -c"))
	for i := range 20 {
		c.write(t, itoa(i), make([]byte, 50000))
	}
	c.p.CloseStdin()
	if _, err := c.p.Write("late", []byte("x"), nil); err == nil {
		t.Error("a write after the end of input succeeded")
	}
	g.open(t)
	if events, _ := c.wait(t); string(bytes.TrimSpace(output(events, ""))) != "1000000" {
		t.Errorf("it read %s bytes", output(events, ""))
	}
}

func TestAWriteToWhoDoesNotReadFails(t *testing.T) {
	c := start(t, piped("exec <&-; echo up; sleep 1000"))
	c.awaitOutput(t, "up")
	if _, err := c.p.Write("1", []byte("x"), nil); err == nil {
		t.Error("a write to a closed input succeeded")
	}
	c.p.Terminate()
	c.wait(t)
}
