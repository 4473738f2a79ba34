package remote_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/relay"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// connect opens a stream whose records the test makes.
func (r *rig) connect(id string) *remotetest.Conn {
	r.t.Helper()
	st, err := r.peer.Claim(soon(r.t), id, "")
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := st.Open(soon(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = c.Close() }) // nobody reads for ever
	r.t.Cleanup(func() {
		late.Stop()
		_ = c.Close()
	})
	return c
}

// behindLength is a message as it lies in records.
func behindLength(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

const initialize = `{"id":1,"method":"initialize","params":{"clientName":"test"}}`

// answers fails the test if the stream does not answer an initialize that is on its
// way.
func answers(t *testing.T, c *remotetest.Conn, name string) {
	t.Helper()
	if f, err := c.ReadFrame(); err != nil || !strings.Contains(string(f.Body()), `"sessionId"`) {
		t.Errorf("%s: %q, %v", name, f, err)
	}
}

func TestRecordsOnTheWay(t *testing.T) {
	for name, tt := range map[string]struct {
		send  func(c *remotetest.Conn) error
		reset bool
	}{
		"one":          {func(c *remotetest.Conn) error { return c.SendRecord(behindLength(initialize)) }, false},
		"empty ones":   {func(c *remotetest.Conn) error { return records(c, nil, nil, behindLength(initialize), nil) }, false},
		"byte by byte": {func(c *remotetest.Conn) error { return records(c, bytes.Split(behindLength(initialize), nil)...) }, false},
		"all at once": {func(c *remotetest.Conn) error {
			return c.SendRecord(bytes.Join([][]byte{behindLength(initialize), behindLength(`{"method":"initialized"}`), behindLength(`{"id":2,"method":"environment/status"}`)}, nil))
		}, false},
		"61440 bytes": {func(c *remotetest.Conn) error {
			return c.SendRecord(behindLength(initialize + strings.Repeat(" ", 61436-len(initialize))))
		}, false},
		"61441 bytes": {func(c *remotetest.Conn) error {
			return c.SendRecord(behindLength(initialize + strings.Repeat(" ", 61437-len(initialize))))
		}, true},
		"length 0":    {func(c *remotetest.Conn) error { return c.SendRecord(make([]byte, 4)) }, true},
		"over 64 MiB": {func(c *remotetest.Conn) error { return c.SendRecord(binary.BigEndian.AppendUint32(nil, 64<<20+1)) }, true},
		"no JSON":     {func(c *remotetest.Conn) error { return c.SendRecord(behindLength("hello")) }, true},
		"an array":    {func(c *remotetest.Conn) error { return c.SendRecord(behindLength("[]")) }, true},
		"no request":  {func(c *remotetest.Conn) error { return c.SendRecord(behindLength("{}")) }, true},
		"an id of null": {func(c *remotetest.Conn) error {
			return c.SendRecord(behindLength(`{"id":null,"method":"environment/status"}`))
		}, true},
		"an answer":   {func(c *remotetest.Conn) error { return c.SendRecord(behindLength(`{"id":7,"result":1}`)) }, true},
		"64 ahead":    {func(c *remotetest.Conn) error { return ahead(c, 64) }, false},
		"65 ahead":    {func(c *remotetest.Conn) error { return ahead(c, 65) }, true},
		"1 MiB waits": {func(c *remotetest.Conn) error { return early(c, 17) }, false},
		"more waits":  {func(c *remotetest.Conn) error { return early(c, 18) }, true},
		"129 wait":    {func(c *remotetest.Conn) error { return pipeline(c, 400) }, true},
		"tampered with": {func(c *remotetest.Conn) error {
			f, _ := c.Record(behindLength(initialize))
			f.Payload[9] ^= 1
			return c.Send(f)
		}, true},
		"not encrypted": {func(c *remotetest.Conn) error {
			return c.Send(relay.Frame{Kind: relay.Data, Payload: behindLength(initialize)})
		}, true},
		"too short":      {func(c *remotetest.Conn) error { return c.Send(relay.Frame{Kind: relay.Data, Payload: []byte("short")}) }, true},
		"another stream": {func(c *remotetest.Conn) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.noise("e")
			other := r.open("e", "")
			c := r.connect("e")
			if name == "another stream" { // its records mean nothing here
				f, _ := r.connect("e").Record(behindLength(initialize))
				f.StreamID = ""
				tt.send, tt.reset = func(c *remotetest.Conn) error { return c.Send(f) }, true
			}
			sent := make(chan error, 1)
			go func() { sent <- tt.send(c) }() // what is answered has to be read meanwhile
			if tt.reset {
				for {
					if _, err := c.ReadFrame(); errors.Is(err, remotetest.ErrReset) {
						break
					} else if err != nil {
						t.Fatalf("it ends with %v", err)
					}
				}
				c.Forget() // so are the answers to what it sends from now on
			} else {
				answers(t, c, name)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			other.alive()
			if odd := r.peer.Odd(); odd != nil {
				t.Error(strings.Join(odd, "\n"))
			}
		})
	}
}

func records(c *remotetest.Conn, texts ...[]byte) error {
	for _, text := range texts {
		if err := c.SendRecord(text); err != nil {
			return err
		}
	}
	return nil
}

// ahead sends a message in a record each byte, or each few, the first of them last,
// and some of them twice.
func ahead(c *remotetest.Conn, n int) error {
	text := behindLength(initialize + strings.Repeat(" ", n))
	var frames []relay.Frame
	for i := range n {
		f, err := c.Record(text[i : i+1])
		if err != nil {
			return err
		}
		frames = append(frames, f)
	}
	f, err := c.Record(text[n:])
	if err != nil {
		return err
	}
	frames = append(frames, f)
	for i := len(frames) - 1; i >= 0; i-- {
		for range 1 + i%2 {
			if err := c.Send(frames[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// early sends n large records, and then the one that should have come first.
func early(c *remotetest.Conn, n int) error {
	text := behindLength(initialize + strings.Repeat(" ", n*remotetest.MaxRecord))
	first, err := c.Record(text[:len(text)-n*remotetest.MaxRecord])
	if err != nil {
		return err
	}
	for i := range n {
		at := len(text) - (n-i)*remotetest.MaxRecord
		if err := c.SendRecord(text[at : at+remotetest.MaxRecord]); err != nil {
			return err
		}
	}
	return c.Send(first)
}

// pipeline sends n requests behind one that takes long.
func pipeline(c *remotetest.Conn, n int) error {
	texts := [][]byte{
		behindLength(initialize), behindLength(`{"method":"initialized"}`),
		behindLength(`{"id":2,"method":"process/start","params":{"processId":"p","argv":["/bin/sleep","1000"],"cwd":"file:///","env":{},"tty":false}}`),
		behindLength(`{"id":3,"method":"process/read","params":{"processId":"p","waitMs":600000}}`),
	}
	for i := range n {
		texts = append(texts, behindLength(fmt.Sprintf(`{"id":%d,"method":"environment/status"}`, 4+i)))
	}
	return records(c, texts...)
}

// Messages that are no frames of anybody are dropped, and touch nothing.
func TestMessagesThatAreNoFrames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.noise("e")
	h := r.open("e", "")
	c := r.connect("e")
	field := func(n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
	}
	text := func(n protowire.Number, v string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	head := join(field(1, 1), text(2, c.ID))
	valid, err := c.Record(behindLength(initialize))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range [][]byte{
		nil, []byte("hello"), bytes.Repeat([]byte{0xff}, 1000), head,
		join(field(1, 2), text(2, c.ID), text(8, string(text(1, "reason")))), // another version
		join(field(1, 1), text(2, "  "), text(8, string(text(1, "reason")))), // a blank id
		join(head, text(8, "")), join(head, text(10, "")), join(head, text(5, string(field(3, 1)))), // without what they need
		join(head, text(5, string(join(field(2, 1), field(3, 1), text(4, "x"))))),
		join(head, text(5, string(join(field(3, 2), text(4, "x"))))),
		join(head, text(5, "\xff")), join(head, text(6, "")), join(head, text(9, "")), join(head, text(7, string(field(1, 77)))),
		valid.Append(nil)[:40],
		append(make([]byte, 0, 256<<10), bytes.Repeat([]byte{0}, 256<<10)...), // as large as may be
	} {
		if err := r.peer.SendBytes("e", m); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.peer.SendText("e", "text"); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(valid); err != nil {
		t.Fatal(err)
	}
	answers(t, c, "after all that")
	h.alive()
	if s := l.Status(); s.Reconnects != 0 || s.Streams != 2 {
		t.Errorf("the status is %+v", s)
	}
	if err := r.peer.SendBytes("e", make([]byte, 256<<10+1)); err != nil {
		t.Fatal(err)
	}
	await(t, h.c.Done(), "the end of the connection")
	r.open("e", h.session).alive()
}

func TestResets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.noise("e")
	h := r.open("e", "")
	next := func(st *remotetest.Stream, want relay.Kind) {
		t.Helper()
		if f, err := st.Next(soon(t)); err != nil || f.Kind != want || want == relay.Reset && f.Reason != "noise_relay_protocol_error" {
			t.Errorf("the answer is %v, %v", f, err)
		}
	}
	claim := func() *remotetest.Stream {
		st, err := r.peer.Claim(soon(t), "e", strings.Repeat("é", 2000)) // any id will do
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := claim()
	_ = st.Send(relay.Frame{Kind: relay.Reset, Reason: "of an unknown stream"}) // means nothing
	_ = st.Send(relay.Frame{Kind: relay.Data, Payload: []byte("to an unknown stream")})
	next(st, relay.Reset)
	st.Close()
	h.alive()

	// While the registry is asked.
	for _, again := range []relay.Frame{{Kind: relay.Data, Payload: []byte("x")}, {Kind: relay.Handshake, Payload: []byte("x")}} {
		r.peer.Set("e", func(f *remotetest.Faults) { f.Validate = remotetest.Plan{Hang: true, Count: 1} })
		st := claim()
		message, err := st.Initiate()
		if err != nil {
			t.Fatal(err)
		}
		r.peer.ForgetCalls()
		_ = st.Send(relay.Frame{Kind: relay.Handshake, Payload: message})
		if _, err := r.peer.AwaitCalls(soon(t), "e", remotetest.Validate, 1); err != nil {
			t.Fatal(err)
		}
		_ = st.Send(again)
		next(st, relay.Reset)
		st.Forget()
		st = claim() // the id can be had again
		if _, err := st.Open(soon(t)); err != nil {
			t.Error(err)
		}
		st.Close()
	}

	// A handshake for an open stream is refused, and it stays open.
	c := r.connect("e")
	_ = c.Send(relay.Frame{Kind: relay.Handshake, Payload: []byte("x")})
	next(c.Stream, relay.Reset)
	_ = c.SendRecord(behindLength(initialize))
	answers(t, c, "after a second handshake")
	_ = c.Send(relay.Frame{Kind: relay.Reset, Reason: "the harness is gone"})
	_ = c.SendRecord(behindLength(`{"method":"initialized"}`))
	next(c.Stream, relay.Reset) // it is unknown now, and was ended without a word
	h.alive()
}

// What the rendezvous does to frames is either repaired or costs one stream.
func TestARendezvousThatIsNotWell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.noise("e")
	for name, way := range map[string]remotetest.Way{
		"duplicates": {Duplicate: 2}, "another order": {Reorder: 3}, "both": {Duplicate: 2, Reorder: 5},
	} {
		r.peer.Set("e", func(f *remotetest.Faults) { f.Chunk, f.ToExecutor, f.FromExecutor = 100, way, way })
		h := r.open("e", "")
		for i := range 5 {
			want := strings.Repeat(fmt.Sprint(i), 1000)
			if got := h.sh("printf %s " + want); got != want {
				t.Errorf("%s: %.20q", name, got)
			}
		}
	}
	r.peer.Set("e", func(f *remotetest.Faults) { *f = remotetest.Faults{} })
	other, h := r.open("e", ""), r.open("e", "")
	r.peer.Set("e", func(f *remotetest.Faults) { f.ToExecutor = remotetest.Way{Tamper: 1} })
	if _, err := h.call("environment/status", nil); err == nil {
		t.Error("a record that was tampered with is read")
	}
	r.peer.Set("e", func(f *remotetest.Faults) { *f = remotetest.Faults{} })
	other.alive()

	// A lost record is waited for.
	c := r.connect("e")
	if _, err := c.Record(behindLength(initialize)); err != nil {
		t.Fatal(err)
	}
	_ = c.SendRecord(behindLength(initialize))
	lost := time.AfterFunc(time.Second, func() { _ = c.Close() })
	defer lost.Stop()
	if _, err := c.ReadFrame(); !errors.Is(err, remotetest.ErrClosed) {
		t.Errorf("after a record that was lost: %v", err)
	}
}

// A reply that is too large for the relay fails its call, and nothing else.
func TestAReplyThatIsTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.noise("e")
	c, other := r.connect("e"), r.open("e", "")
	if err := records(c, behindLength(initialize), behindLength(`{"method":"initialized"}`)); err != nil {
		t.Fatal(err)
	}
	answers(t, c, "initialize")
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		size   int64
		answer string // its beginning
		fits   bool
	}{"small": {47 << 20, `{"id":2,"result":{"dataBase64":"AAAA`, true}, "large": {49 << 20, `{"error":{"code":-32603,`, false}} {
		if tt.fits && raceEnabled {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, tt.size); err != nil {
			t.Fatal(err)
		}
		if err := c.SendRecord(behindLength(fmt.Sprintf(`{"id":2,"method":"fs/readFile","params":{"path":"%s"}}`, proto.FileURI(path)))); err != nil {
			t.Fatal(err)
		}
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if text := f.Body(); !bytes.HasPrefix(text, []byte(tt.answer)) || tt.fits != (int64(len(text)) > tt.size) {
			t.Errorf("%s: %d bytes, %.100q", name, len(text), text)
		}
		if err := c.SendRecord(behindLength(`{"id":3,"method":"environment/status"}`)); err != nil {
			t.Fatal(err)
		}
		if f, err := c.ReadFrame(); err != nil || !strings.Contains(string(f.Body()), `"ready"`) {
			t.Errorf("%s, and then: %.100q, %v", name, f, err)
		}
		other.alive()
	}
}

// Over direct, what is no message is answered, as on a listener's connection. The
// answer names the socket, without what may be secret of its URL.
