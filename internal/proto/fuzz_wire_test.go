package proto

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"m"}`, `{"id":"\u0061","method":"m","params":null}`, `{"method":"initialized"}`,
		`{"id":-5,"result":{}}`, `{"id":1,"error":{"code":-1,"message":"x"}}`, `{"id":1.0,"method":"m"}`, `[]`,
		`{"id":1,"method":"m","result":{}}`, `{"method":"m","trace":{"traceparent":5}}`, `{"jsonrpc":"2.0","id":"","method":"","params":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMessage(text)
		if err != nil {
			if answer := ErrorFrame(Value{}, Invalid("%s", err)).Body(); !json.Valid(answer) {
				t.Fatalf("the error for %q is no JSON: %q", text, answer)
			}
			return
		}
		v, err := Parse(text)
		if err != nil {
			t.Fatalf("%q is a message and no JSON: %v", text, err)
		}
		kind := Answer
		if v.Get("method").Kind != Absent {
			if kind = Notification; v.Get("id").Kind != Absent {
				kind = Request
			}
		}
		if m.Kind != kind || kind != Answer && m.Method != v.Get("method").Str() {
			t.Fatalf("%q is of kind %v with method %q, want kind %v", text, m.Kind, m.Method, kind)
		}
		if m.Kind == Notification {
			if m.ID.Kind != Absent {
				t.Fatalf("%q is a notification with an id", text)
			}
			return
		}
		for _, frame := range []Frame{ResultFrame(m.ID, Empty{}), ErrorFrame(m.ID, Invalid("%s", m.Method))} {
			back, err := ParseMessage(frame.Body())
			if err != nil || back.Kind != Answer || back.ID.Kind != m.ID.Kind || !bytes.Equal(back.ID.Raw(), m.ID.Raw()) {
				t.Fatalf("the answer to %q is %q: %v", text, frame.Body(), err)
			}
		}
	})
}

// FuzzParseURI checks that what is read as a path is written and read again as
// the same.
func FuzzParseURI(f *testing.F) {
	for _, s := range []string{
		"file:///tmp/x", "file:x", `file:\\a\b`, "file://localhost/%C3%A9%ff", "file:///C:/x", "file:///a/../../b/", "file:///%2e%2E/%25",
		" file:///a b ", "file:///a?b", "https://x", "file://h/x", "file:///%00", "fi\nle:///x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURI(text)
		if err != nil {
			return
		}
		path, err := u.Native()
		if err != nil {
			if e := WireError(err); e.Code != CodeInvalidRequest || u.String() == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if path == "" || path[0] != '/' || strings.IndexByte(path, 0) >= 0 || cleanPath(path) != path {
			t.Fatalf("%q is the path %q", text, path)
		}
		uri := u.String()
		for i := range len(uri) {
			if uri[i] <= 0x20 || uri[i] > 0x7e {
				t.Fatalf("%q is written %q", text, uri)
			}
		}
		again, err := ParseURI(uri)
		if err != nil || again.path != u.path || again.foreign != u.foreign {
			t.Fatalf("%q is written %q and read as %+v, %v", text, uri, again, err)
		}
	})
}

// FuzzStreamConn reads any bytes, in pieces of any size.
func FuzzStreamConn(f *testing.F) {
	f.Add(stream("one", "", "three"), uint16(3), uint32(100))
	f.Add(stream(strings.Repeat("x", 700)), uint16(99), uint32(700))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3}, uint16(1), uint32(1<<31))
	f.Fuzz(func(t *testing.T, data []byte, piece uint16, limit uint32) {
		bound := int(limit) % (MaxAnswer + 1)
		c := NewStreamConn(pipeEnd{&pieces{data, int(piece) + 1}}, bound)
		var seen []byte
		for i := 0; ; i++ {
			var frames []byte
			var err error
			if i%2 == 0 {
				frames, err = c.ReadFrame()
			} else {
				frames, err = c.ReadFrames()
			}
			if len(c.buf) > 64<<10+2*len(data) {
				t.Fatalf("%d bytes of buffer for %d of data", len(c.buf), len(data))
			}
			if err != nil {
				break
			}
			seen = append(seen, frames...)
		}
		if !bytes.HasPrefix(data, seen) {
			t.Fatal("the frames are not what was sent")
		}
		// What was not returned is not a whole frame, or one over the limit.
		rest := data[len(seen):]
		if len(rest) >= HeaderSize {
			if n := int(binary.LittleEndian.Uint32(rest)); n <= bound && len(rest) >= HeaderSize+n {
				t.Fatalf("a frame of %d bytes was not returned", n)
			}
		}
	})
}

// pieces reads data in pieces of up to n bytes.
type pieces struct {
	data []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data[:min(p.n, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}
