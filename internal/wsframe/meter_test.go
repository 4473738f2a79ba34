package wsframe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// firstOver is where the header ends that announces more than limit, or -1: the
// meter's work, done on a stream that is all there.
func firstOver(stream []byte, limit uint64) int {
	for at := 0; len(stream)-at >= 2; {
		size, head := uint64(stream[at+1]&0x7f), 2
		switch {
		case size == 126 && len(stream)-at < 4, size == 127 && len(stream)-at < 10:
			return -1
		case size == 126:
			size, head = uint64(binary.BigEndian.Uint16(stream[at+2:])), 4
		case size == 127:
			size, head = binary.BigEndian.Uint64(stream[at+2:]), 10
		}
		if size > limit {
			return at + head
		}
		if stream[at+1]&0x80 != 0 {
			head += 4
		}
		if uint64(len(stream)-at) < uint64(head)+size {
			return -1
		}
		at += head + int(size)
	}
	return -1
}

// pieces is a stream that arrives in pieces.
type pieces struct {
	rest []byte
	size int
}

func (r *pieces) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.size)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// metering is a stream that is metered.
type metering struct {
	r io.Reader
	m *Meter
}

func (r metering) Read(p []byte) (int, error) { return r.m.Read(r.r, p) }

func meter(stream []byte, size int, limit uint64) metering {
	return metering{&pieces{stream, size}, &Meter{limit: limit}}
}

// readAll is io.ReadAll, to which the end is ErrEnd.
func readAll(r io.Reader) ([]byte, error) {
	got, err := io.ReadAll(r)
	if err == ErrEnd {
		err = nil
	}
	return got, err
}

const text, binaryFrame, continued, more = 0x81, 0x82, 0x80, 0x7f

// frame is a frame as a client sends it, with any first byte, masked with zeros.
func frame(first byte, payload []byte) []byte {
	out := append(appendHeader(nil, 0, mask, len(payload)), 0, 0, 0, 0)
	out[0] = first
	return append(out, payload...)
}

func TestTheMeterStopsAtAFrameThatIsTooLarge(t *testing.T) {
	header := func(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, n) }
	good := frame(text, []byte("good"))
	for name, tt := range map[string]struct {
		stream []byte
		over   bool
	}{
		"at the limit":          {append(bytes.Clone(good), header(MaxPayload)...), false},
		"one over":              {append(bytes.Clone(good), header(MaxPayload+1)...), true},
		"absurd":                {append(bytes.Clone(good), header(1<<64-1)...), true},
		"a continuation":        {append(bytes.Clone(good), 0x80, 0x7f, 0, 0, 0, 0, 1, 0, 0, 1), true},
		"not all of the header": {append(bytes.Clone(good), header(MaxPayload + 1)[:9]...), false},
	} {
		for piece := 1; piece < 20; piece++ {
			stream := bytes.Clone(tt.stream)
			if tt.over {
				stream = append(stream, "more"...)
			}
			r := meter(stream, piece, MaxPayload)
			got, err := readAll(r)
			if errors.Is(err, ErrSize) != tt.over || tt.over && len(got) != len(tt.stream) || !tt.over && err != nil {
				t.Errorf("%s, in pieces of %d: %d bytes, %v", name, piece, len(got), err)
			}
			if _, err := r.Read(make([]byte, 10)); tt.over && !errors.Is(err, ErrSize) {
				t.Errorf("%s: it goes on with %v", name, err)
			}
		}
	}
}

// messages lets the library read a stream as a server's connection.
func messages(stream io.Reader) (all [][]byte) {
	c := &replay{r: stream}
	r := &http.Request{Method: "GET", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}}
	ws, err := websocket.Accept(c, r, nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(-1)
	for {
		_, msg, err := ws.Read(context.Background())
		if err != nil {
			return all
		}
		all = append(all, msg)
	}
}

// replay is a connection whose peer has said all that it will.
type replay struct {
	net.Conn
	r io.Reader
	h http.Header
}

// Read implements net.Conn, with an end as a Meter has it.
func (c *replay) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		err = ErrEnd
	}
	return n, err
}

func (c *replay) Write(p []byte) (int, error)     { return len(p), nil }
func (c *replay) SetDeadline(time.Time) error     { return nil }
func (c *replay) SetReadDeadline(time.Time) error { return nil }
func (c *replay) Close() error                    { return nil }
func (c *replay) WriteHeader(int)                 {}
func (c *replay) Header() http.Header {
	if c.h == nil {
		c.h = http.Header{}
	}
	return c.h
}
func (c *replay) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return c, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(io.Discard)), nil
}

// FuzzMeter holds the meter against a stream that is all there, and against
// the library: with it or without, the library reads the same messages.
func FuzzMeter(f *testing.F) {
	f.Add(append(frame(text, []byte("hello")), frame(binaryFrame, make([]byte, 300))...), byte(3), byte(200))
	f.Add(append(frame(text&more, nil), frame(continued, make([]byte, 70000))...), byte(255), byte(255))
	f.Add([]byte{0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58, 0x89, 0x80, 0, 0, 0, 0}, byte(1), byte(5))
	f.Add([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, byte(7), byte(0))
	f.Fuzz(func(t *testing.T, stream []byte, piece, limit byte) {
		size := int(piece) + 1
		got, err := readAll(meter(stream, size, uint64(limit)))
		switch want := firstOver(stream, uint64(limit)); {
		case want < 0 && (err != nil || len(got) != len(stream)):
			t.Errorf("% x: stopped after %d bytes, %v", stream, len(got), err)
		case want >= 0 && (!errors.Is(err, ErrSize) && want < len(stream) || len(got) != want):
			t.Errorf("% x: stopped after %d bytes, %v, want %d", stream, len(got), err, want)
		}
		plain, metered := messages(&pieces{stream, size}), messages(meter(stream, size, MaxPayload))
		if len(plain) != len(metered) {
			t.Errorf("% x: %d messages, metered %d", stream, len(plain), len(metered))
		}
	})
}

// The library alone takes a connection that ends within a payload for the end of
// the message.
func TestACutMessageIsNone(t *testing.T) {
	whole, cut := frame(text, []byte("whole")), frame(text, make([]byte, 70000))
	for n := range 20 {
		stream := append(bytes.Clone(whole), cut[:n]...)
		if got := messages(metering{bytes.NewReader(stream), NewMeter()}); len(got) != 1 || string(got[0]) != "whole" {
			t.Errorf("and %d bytes more: %q", n, got)
		}
	}
}

func BenchmarkMeter(b *testing.B) {
	stream := bytes.Repeat(frame(text, make([]byte, 200)), 100)
	m := &Meter{limit: MaxPayload}
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		_, _ = m.Pass(stream)
	}
}
