package relay

import (
	"bytes"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestFramesThereAndBack(t *testing.T) {
	for _, f := range []Frame{
		{Kind: Data, StreamID: "s", Payload: []byte("record")},
		{Kind: Data, StreamID: "é", Seq: 1<<32 - 1, Payload: bytes.Repeat([]byte{0}, 70000)},
		{Kind: Handshake, StreamID: "s", Payload: []byte{0}},
		{Kind: Reset, StreamID: "s", Reason: "why"},
		{Kind: Resume, StreamID: "s"},
		{Kind: Heartbeat, StreamID: "s"},
		{Kind: Ack, StreamID: "s"},
	} {
		got, err := Parse(f.Append(nil))
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%v becomes %v, %v", f, got, err)
		}
	}
}

// The bytes of a data frame, as they have to be on the wire.
func TestADataFrameByItsBytes(t *testing.T) {
	f := Frame{Kind: Data, StreamID: "ab", Seq: 3, Payload: []byte("xyz")}
	want := []byte{0x08, 1, 0x12, 2, 'a', 'b', 0x2a, 9, 0x08, 3, 0x18, 1, 0x22, 3, 'x', 'y', 'z'}
	if got := f.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestWhatIsNoFrame(t *testing.T) {
	field := func(n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
	}
	text := func(n protowire.Number, v string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	head := join(field(1, 1), text(2, "s"))
	data := func(parts ...[]byte) []byte { return join(head, text(5, string(join(parts...)))) }
	for name, m := range map[string][]byte{
		"nothing":         nil,
		"text":            []byte("hello"),
		"no body":         head,
		"version 0":       join(text(2, "s"), text(8, string(text(1, "r")))),
		"version 2":       join(field(1, 2), text(2, "s"), text(8, string(text(1, "r")))),
		"no id":           join(field(1, 1), text(8, string(text(1, "r")))),
		"a blank id":      join(field(1, 1), text(2, " \t"), text(8, string(text(1, "r")))),
		"no reason":       join(head, text(8, "")),
		"no handshake":    join(head, text(10, "")),
		"no payload":      data(field(1, 1), field(3, 1)),
		"no count":        data(text(4, "p")),
		"a later segment": data(field(2, 1), field(3, 1), text(4, "p")),
		"two segments":    data(field(3, 2), text(4, "p")),
		"a broken body":   data([]byte{0xff}),
		"cut short":       data(field(3, 1), text(4, "p"))[:9],
	} {
		if f, err := Parse(m); err == nil {
			t.Errorf("%s is the frame %v", name, f)
		}
	}
	// Whoever knows more may say more.
	if f, err := Parse(join(head, field(3, 7), field(4, 1), text(99, "?"), text(5, string(join(field(3, 1), text(4, "p"), text(77, "?")))))); err != nil || string(f.Payload) != "p" {
		t.Errorf("with unknown fields: %v, %v", f, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, frame := range []Frame{{Kind: Data, StreamID: "s", Seq: 9, Payload: []byte("p")}, {Kind: Reset, StreamID: "s", Reason: "r"}, {Kind: Resume, StreamID: "s"}} {
		f.Add(frame.Append(nil))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		frame, err := Parse(message)
		if err != nil {
			return
		}
		if again, err := Parse(frame.Append(nil)); err != nil || !reflect.DeepEqual(frame, again) {
			t.Errorf("%v becomes %v, %v", frame, again, err)
		}
	})
}
