package process

import (
	"fmt"
	"testing"
	"time"
)

// threeChunks is a command that has printed chunks 1 to 3, exited with 4 and
// closed with 5.
func threeChunks(t *testing.T) *command {
	t.Helper()
	c := start(t, piped("while read l; do echo $l; done"))
	for i := range 3 {
		line := fmt.Sprintf("l%d\n", i)
		c.write(t, line, []byte(line))
		c.awaitOutput(t, line)
	}
	c.p.CloseStdin()
	c.wait(t)
	return c
}

func seqs(r Reading) (s []uint64) {
	for _, c := range r.Chunks {
		s = append(s, c.Seq)
	}
	return s
}

func TestReadOfAClosedCommand(t *testing.T) {
	c := threeChunks(t)
	for _, test := range []struct {
		after, maxBytes uint64
		bounded         bool
		chunks          string
		next            uint64
	}{
		{0, 0, false, "[1 2 3]", 6},
		{1, 0, false, "[2 3]", 6},
		{3, 0, false, "[]", 6},
		{5, 0, false, "[]", 6},
		{1 << 60, 0, false, "[]", 6},
		{0, 0, true, "[1]", 2},
		{0, 1, true, "[1]", 2},
		{0, 3, true, "[1]", 2},
		{0, 5, true, "[1]", 2},
		{0, 6, true, "[1 2]", 3},
		{0, 1000, true, "[1 2 3]", 4},
		{3, 1000, true, "[]", 6},
	} {
		r := c.p.Read(test.after, test.maxBytes, test.bounded, time.Hour, nil)
		if got := fmt.Sprint(seqs(r)); got != test.chunks || r.NextSeq != test.next || !r.Exited || !r.Closed || r.ExitCode != 0 {
			t.Errorf("after %d, at most %d %v: chunks %s, %+v", test.after, test.maxBytes, test.bounded, got, r)
		}
	}
	want := `{"chunks":[{"seq":3,"stream":"stdout","chunk":"bDIK"}],"nextSeq":6,"exited":true,"exitCode":0,"closed":true,"failure":null,"sandboxDenied":false}`
	r := c.p.Read(2, 0, false, 0, nil)
	if got := string(r.AppendJSON(nil)); got != want || r.SizeJSON() < len(got) {
		t.Errorf("the answer is %s", got)
	}
}

func TestReadOfARunningCommand(t *testing.T) {
	c := start(t, piped("cat"))
	r := c.p.Read(0, 0, false, 0, nil)
	want := `{"chunks":[],"nextSeq":1,"exited":false,"exitCode":null,"closed":false,"failure":null,"sandboxDenied":false}`
	if got := string(r.AppendJSON(nil)); got != want {
		t.Errorf("the answer is %s", got)
	}
	begun := time.Now()
	if r := c.p.Read(0, 0, false, 30*time.Millisecond, nil); len(r.Chunks) > 0 || time.Since(begun) < 30*time.Millisecond {
		t.Errorf("a read without news returned %+v after %v", r, time.Since(begun))
	}
	canceled := make(chan struct{})
	close(canceled)
	c.p.Read(0, 0, false, time.Hour, canceled)
	c.p.CloseStdin()
}

func TestAWaitingReadEndsWithNews(t *testing.T) {
	c := start(t, piped("cat; exit 3"))
	read := func(after uint64) <-chan Reading {
		got := make(chan Reading, 1)
		if c.p.Ready(after) {
			t.Errorf("there is something after %d already", after)
		}
		go func() { got <- c.p.Read(after, 0, false, time.Hour, nil) }()
		return got
	}
	first, second := read(0), read(0)
	c.write(t, "1", []byte("a"))
	for _, got := range []<-chan Reading{first, second} {
		if r := <-got; fmt.Sprint(seqs(r)) != "[1]" || r.NextSeq != 2 || r.Exited {
			t.Errorf("output gives %+v", r)
		}
	}
	exit := read(1)
	c.p.CloseStdin()
	if r := <-exit; !r.Exited || r.ExitCode != 3 || len(r.Chunks) > 0 {
		t.Errorf("the exit gives %+v", r)
	}
}

// Between the exit and the end of the streams a reader that knows of the exit
// waits for more.
func TestReadBetweenExitAndClosed(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("{ : <"+string(g)+"; echo late; } & exit 0"))
	c.awaitExit(t)
	r := c.p.Read(0, 0, false, time.Hour, nil)
	if !r.Exited || r.Closed || r.NextSeq != 2 {
		t.Fatalf("an older reader gets %+v", r)
	}
	got := make(chan Reading, 1)
	go func() { got <- c.p.Read(1, 0, false, time.Hour, nil) }()
	if c.p.Ready(1) {
		t.Error("there is news for a reader that knows of the exit")
	}
	g.open(t)
	if r := <-got; fmt.Sprint(seqs(r)) != "[2]" {
		t.Errorf("the late output gives %+v", r)
	}
	c.wait(t)
}

func TestTheLastOutputIsRetained(t *testing.T) {
	path, want := noise(t, 1<<20)
	spec := sh("")
	spec.Argv = []string{"cat", path}
	c := startWith(t, spec, Options{OutputBytes: 100000})
	events, _ := c.wait(t)
	r := c.p.Read(0, 0, false, 0, nil)
	var got []byte
	for i, chunk := range r.Chunks {
		if i > 0 && chunk.Seq != r.Chunks[i-1].Seq+1 && events[chunk.Seq-2].method != "exited" {
			t.Errorf("chunk %d follows %d", chunk.Seq, r.Chunks[i-1].Seq)
		}
		got = append(got, chunk.Data...)
	}
	if len(got) > 100000 || len(got) <= 100000-8192 || string(got) != string(want[len(want)-len(got):]) {
		t.Errorf("%d bytes are retained, or others", len(got))
	}
	if first := r.Chunks[0].Seq; first < 2 {
		t.Errorf("the first chunk is %d", first)
	}
}
