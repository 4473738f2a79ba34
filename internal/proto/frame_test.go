package proto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// pipeEnd is the reading side of a stream that nobody writes to.
type pipeEnd struct{ io.Reader }

func (pipeEnd) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (pipeEnd) Close() error              { return nil }

func stream(messages ...string) []byte {
	var out []byte
	for _, m := range messages {
		out = append(out, FrameOf([]byte(m))...)
	}
	return out
}

// messages reads frames until an error.
func messages(c *StreamConn) (got []string, err error) {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return got, err
		}
		got = append(got, string(f.Body()))
	}
}

func TestFramesSurviveAnySplit(t *testing.T) {
	want := []string{"", "a", strings.Repeat("b", 100), "", strings.Repeat("c", 64<<10), strings.Repeat("d", 300000), "e"}
	data := stream(want...)
	for name, r := range map[string]io.Reader{
		"whole":         bytes.NewReader(data),
		"single bytes":  iotest.OneByteReader(bytes.NewReader(data)),
		"halves":        iotest.HalfReader(bytes.NewReader(data)),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		got, err := messages(NewStreamConn(pipeEnd{r}, 1<<20))
		if err != io.EOF || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %d messages, %v", name, len(got), err)
		}
	}
}

func TestTheLimitOfAFrameIsExact(t *testing.T) {
	for _, limit := range []int{0, 1, 100, 64 << 10, 64<<10 - HeaderSize, 200000} {
		fits, over := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
		got, err := messages(NewStreamConn(pipeEnd{bytes.NewReader(stream("", fits, fits, over, "y"))}, limit))
		if !errors.Is(err, ErrFrameSize) || len(got) != 3 || got[1] != fits || got[2] != fits {
			t.Errorf("limit %d: %d messages, %v", limit, len(got), err)
		}
	}
}

func TestAnEndWithinAFrameIsUnexpected(t *testing.T) {
	data := stream("first", "second")
	for n := range len(data) + 1 {
		_, err := messages(NewStreamConn(pipeEnd{bytes.NewReader(data[:n])}, 100))
		want := io.ErrUnexpectedEOF
		if n == 0 || n == len(stream("first")) || n == len(data) {
			want = io.EOF
		}
		if err != want {
			t.Errorf("after %d bytes: %v, want %v", n, err, want)
		}
	}
}

// A length prefix is a promise: memory is only for what has arrived.
func TestAPromisedLengthTakesNoMemory(t *testing.T) {
	data := binary.LittleEndian.AppendUint32(nil, 1<<30)
	c := NewStreamConn(pipeEnd{bytes.NewReader(append(data, "a few bytes"...))}, 1<<30)
	if _, err := c.ReadFrame(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if len(c.buf) > 64<<10 {
		t.Errorf("the buffer has %d bytes", len(c.buf))
	}
}

func TestTheBufferShrinksAfterALargeFrame(t *testing.T) {
	c := NewStreamConn(pipeEnd{bytes.NewReader(stream(strings.Repeat("x", 8<<20), "y"))}, 8<<20)
	for range 2 {
		if _, err := c.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ReadFrame(); err != io.EOF || len(c.buf) > 1<<20 {
		t.Errorf("%v; the buffer has %d bytes still", err, len(c.buf))
	}
}

func TestReadFramesReturnsWhatArrivedTogether(t *testing.T) {
	r, w := io.Pipe()
	c := NewStreamConn(pipeEnd{r}, 100)
	batch := stream("a", "", "ccc")
	part := stream("dd")
	go func() {
		_, _ = w.Write(append(bytes.Clone(batch), part[:5]...))
		_, _ = w.Write(part[5:])
		_, _ = w.Write(append(stream("e"), FrameOf(make([]byte, 101))...))
		_ = w.Close()
	}()
	for _, want := range [][]byte{batch, part, stream("e")} {
		got, err := c.ReadFrames()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if _, err := c.ReadFrames(); !errors.Is(err, ErrFrameSize) {
		t.Errorf("a frame over the limit gives %v", err)
	}
}

func TestAFrameCannotGrowIntoTheNext(t *testing.T) {
	c := NewStreamConn(pipeEnd{bytes.NewReader(stream("one", "two"))}, 100)
	f, err := c.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	_ = append(f, "XXXXXXXX"...)
	if f, err = c.ReadFrame(); err != nil || string(f.Body()) != "two" {
		t.Errorf("the next frame is %q, %v", f, err)
	}
}

func TestFramesAreBuiltBehindEachOther(t *testing.T) {
	var frames []byte
	for _, m := range []string{"one", "", "three"} {
		var start int
		frames, start = OpenFrame(frames)
		frames = CloseFrame(append(frames, m...), start)
	}
	if want := stream("one", "", "three"); !bytes.Equal(frames, want) {
		t.Errorf("got %q, want %q", frames, want)
	}
	f, rest := NextFrame(frames)
	if string(f.Body()) != "one" || cap(f) != len(f) {
		t.Errorf("the first frame is %q", f)
	}
	for n := range len(stream("")) {
		if f, back := NextFrame(rest[:n]); f != nil || len(back) != n {
			t.Errorf("%d bytes are a frame", n)
		}
	}
}
