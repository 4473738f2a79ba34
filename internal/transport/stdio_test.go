package transport

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/proto"
)

// lines reads messages until an error.
func lines(c proto.Conn) (got []string, err error) {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return got, err
		}
		if whole, rest := proto.NextFrame(f); whole == nil || len(rest) > 0 {
			return got, errors.New("not one whole frame")
		}
		got = append(got, string(f.Body()))
	}
}

func TestLinesAreMessages(t *testing.T) {
	long := strings.Repeat("long ", 100000) + "."
	for _, test := range []struct {
		in   string
		want []string
		err  error
	}{
		{"", nil, io.EOF},
		{"\n", nil, io.EOF},
		{"a\nb\n", []string{"a", "b"}, io.EOF},
		{"a\r\nb\r\n", []string{"a", "b"}, io.EOF},
		{"\n\n \t\r\na\n\n\nb\n\n", []string{"a", "b"}, io.EOF},
		{"a\nlast", []string{"a", "last"}, io.EOF},
		{"last\r", []string{"last"}, io.EOF},
		{"   ", nil, io.EOF},
		{"\v\n\f\n\u00a0\n\u2028\na\n", []string{"a"}, io.EOF},
		{"a\rb\r\r\n", []string{"a\rb\r"}, io.EOF},
		{`{"a":1} {"b":2}` + "\n", []string{`{"a":1} {"b":2}`}, io.EOF}, // for the parser to refuse
		{long + "\n" + "é\n", []string{long, "é"}, io.EOF},
		{"a\n\xff\nb\n", []string{"a"}, errNotUTF8},
		{"a\n\xc3", []string{"a"}, errNotUTF8},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(test.in), "bytes": iotest.OneByteReader(strings.NewReader(test.in))} {
			got, err := lines(Stdio(r, io.Discard))
			if !errors.Is(err, test.err) || strings.Join(got, "|") != strings.Join(test.want, "|") {
				t.Errorf("%.40q, %s: %.80q, %v", test.in, name, got, err)
			}
		}
	}
}

func TestALineHasALimit(t *testing.T) {
	if raceEnabled {
		t.Skip("too much for the race detector")
	}
	x := bytes.Repeat([]byte("x"), proto.MaxRequest+1)
	x[0] = '1'
	for _, end := range []string{"", "\n", "\r\n"} {
		c := Stdio(io.MultiReader(bytes.NewReader(x[:proto.MaxRequest]), strings.NewReader(end)), io.Discard)
		if f, err := c.ReadFrame(); err != nil || len(f.Body()) != proto.MaxRequest {
			t.Errorf("the longest line before %q: %v", end, err)
		}
		c = Stdio(io.MultiReader(bytes.NewReader(x), strings.NewReader(end)), io.Discard)
		if _, err := c.ReadFrame(); !errors.Is(err, proto.ErrFrameSize) {
			t.Errorf("a longer line before %q: %v", end, err)
		}
	}
}

// A line that does not end must not take more memory than the longest allowed.
func TestAnEndlessLineIsGivenUp(t *testing.T) {
	if raceEnabled {
		t.Skip("too much for the race detector")
	}
	if _, err := Stdio(endless{}, io.Discard).ReadFrame(); !errors.Is(err, proto.ErrFrameSize) {
		t.Error(err)
	}
}

// One byte more than a line may have is enough to know.
func TestALineThatIsTooLongNeedNotEnd(t *testing.T) {
	if raceEnabled {
		t.Skip("too much for the race detector")
	}
	r, w := io.Pipe()
	go func() { _, _ = w.Write(make([]byte, proto.MaxRequest+1)) }()
	if _, err := Stdio(r, io.Discard).ReadFrame(); !errors.Is(err, proto.ErrFrameSize) {
		t.Error(err)
	}
}

func TestTheEndOfInputIsNoticedBehindUnreadLines(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := Stdio(r, io.Discard, r).(proto.Watcher)
	_, _ = w.WriteString("a\nb\n")
	stop := make(chan struct{})
	close(stop)
	if c.AwaitEnd(stop) {
		t.Error("it ends before it does")
	}
	_ = w.Close()
	if !c.AwaitEnd(nil) {
		t.Error("it is not noticed")
	}
	if f, err := c.ReadFrame(); err != nil || string(f.Body()) != "a" {
		t.Error(err)
	}
}

func TestCloseEndsTheWatch(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, in := range []io.Reader{r, strings.NewReader("")} {
		c := Stdio(in, io.Discard).(proto.Watcher)
		got := make(chan bool)
		go func() { got <- c.AwaitEnd(nil) }()
		if err := c.Close(); err != nil || !<-got {
			t.Errorf("%T: it goes on; %v", in, err)
		}
	}
	_ = r.Close()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestMessagesAreLines(t *testing.T) {
	var out bytes.Buffer
	c := Stdio(strings.NewReader(""), &out)
	frames := append(proto.FrameOf([]byte(`{"a":1}`)), proto.FrameOf([]byte(`{"b":2}`))...)
	if err := c.WriteFrames(frames); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteFrames(proto.FrameOf([]byte(`{}`))); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "{\"a\":1}\n{\"b\":2}\n{}\n" {
		t.Errorf("got %q", got)
	}
	if err := c.WriteFrames(frames[:5]); err == nil {
		t.Error("half a frame is no error")
	}
}

type closer struct{ n *int }

func (c closer) Close() error { *c.n++; return nil }

func TestCloseClosesTheStreams(t *testing.T) {
	n := 0
	if err := Stdio(strings.NewReader(""), io.Discard, closer{&n}, closer{&n}).Close(); err != nil || n != 2 {
		t.Errorf("%d closed, %v", n, err)
	}
}

func FuzzStdio(f *testing.F) {
	for _, s := range []string{"", "\n", "a\r\nb", "{}\n\n{}", "\xff\n", " \t\n x \n", "\r\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want []string
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(bytes.TrimSpace(line)) > 0 {
				want = append(want, string(line))
			}
		}
		got, err := lines(Stdio(bytes.NewReader(in), io.Discard))
		for i, line := range want {
			if !utf8.ValidString(line) {
				if !errors.Is(err, errNotUTF8) || len(got) != i {
					t.Fatalf("%q: %q, %v", in, got, err)
				}
				return
			}
			if len(got) <= i || got[i] != line {
				t.Fatalf("%q: %q, want %q", in, got, want)
			}
		}
		if err != io.EOF || len(got) != len(want) {
			t.Fatalf("%q: %q, %v", in, got, err)
		}
	})
}
