package netns

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	to4, to6 := netip.MustParseAddr(outside4), netip.MustParseAddr(outside6)
	syn := segment(flagSyn, Guest4, to4)
	udp := []byte{0, 1, 0, 2, 0, 8, 0, 0}
	chain := func(n int) []byte {
		b := bytes.Repeat([]byte{unix.IPPROTO_DSTOPTS, 0, 1, 4, 0, 0, 0, 0}, n)
		b[len(b)-8] = unix.IPPROTO_TCP
		return packet6(append(b, syn...), unix.IPPROTO_DSTOPTS, Guest6, to6)
	}
	wide := packet4(syn, unix.IPPROTO_TCP, 0, Guest4, to4)
	wide = append(wide[:20:20], append(make([]byte, 40), wide[20:]...)...)
	wide[0] = 4<<4 | 15
	short := bytes.Clone(wide)
	short[0] = 4<<4 | 4
	for _, s := range []struct {
		name    string
		proto   byte
		b       []byte
		ok, syn bool
		dst     string
	}{
		{"TCP", unix.NFPROTO_IPV4, packet4(syn, unix.IPPROTO_TCP, 0, Guest4, to4), true, true, outside4 + ":443"},
		{"options", unix.NFPROTO_IPV4, wide, true, true, outside4 + ":443"},
		{"header too short", unix.NFPROTO_IPV4, short, false, false, ""},
		{"TCP, cut off", unix.NFPROTO_IPV4, packet4(syn[:19], unix.IPPROTO_TCP, 0, Guest4, to4), false, false, ""},
		{"no first packet", unix.NFPROTO_IPV4, packet4(segment(flagSyn|flagAck, Guest4, to4), unix.IPPROTO_TCP, 0, Guest4, to4), true, false, outside4 + ":443"},
		{"fragment", unix.NFPROTO_IPV4, packet4(syn, unix.IPPROTO_TCP, 0x2000, Guest4, to4), false, false, ""},
		{"not to be fragmented", unix.NFPROTO_IPV4, packet4(syn, unix.IPPROTO_TCP, 0x4000, Guest4, to4), true, true, outside4 + ":443"},
		{"UDP", unix.NFPROTO_IPV4, packet4(udp, unix.IPPROTO_UDP, 0, Guest4, to4), true, false, outside4 + ":2"},
		{"UDP, cut off", unix.NFPROTO_IPV4, packet4(udp[:7], unix.IPPROTO_UDP, 0, Guest4, to4), false, false, ""},
		{"ICMP", unix.NFPROTO_IPV4, packet4(nil, unix.IPPROTO_ICMP, 0, Guest4, to4), true, false, outside4 + ":0"},
		{"another version", unix.NFPROTO_IPV6, packet4(syn, unix.IPPROTO_TCP, 0, Guest4, to4), false, false, ""},
		{"another family", unix.NFPROTO_ARP, packet4(syn, unix.IPPROTO_TCP, 0, Guest4, to4), false, false, ""},
		{"IPv6", unix.NFPROTO_IPV6, packet6(syn, unix.IPPROTO_TCP, Guest6, to6), true, true, "[" + outside6 + "]:443"},
		{"IPv6, extensions", unix.NFPROTO_IPV6, chain(extensions - 1), true, true, "[" + outside6 + "]:443"},
		{"IPv6, too many extensions", unix.NFPROTO_IPV6, chain(extensions), false, false, ""},
		{"IPv6, fragment", unix.NFPROTO_IPV6, packet6(make([]byte, 60), unix.IPPROTO_FRAGMENT, Guest6, to6), false, false, ""},
		{"IPv6, extension cut off", unix.NFPROTO_IPV6, packet6([]byte{unix.IPPROTO_TCP, 1, 0, 0, 0, 0, 0, 0}, unix.IPPROTO_ROUTING, Guest6, to6), false, false, ""},
		{"nothing", unix.NFPROTO_IPV4, nil, false, false, ""},
	} {
		f, syn, ok := parse(s.proto, s.b)
		if ok != s.ok || syn != s.syn {
			t.Errorf("%s: ok %v, syn %v", s.name, ok, syn)
		}
		if ok && f.Dst.String() != s.dst {
			t.Errorf("%s: to %v", s.name, f.Dst)
		}
	}
}

func FuzzParse(f *testing.F) {
	to4, to6 := netip.MustParseAddr(outside4), netip.MustParseAddr(outside6)
	syn := segment(flagSyn, Guest4, to4)
	f.Add(byte(unix.NFPROTO_IPV4), packet4(syn, unix.IPPROTO_TCP, 0, Guest4, to4))
	f.Add(byte(unix.NFPROTO_IPV6), packet6(append([]byte{6, 0, 1, 4, 0, 0, 0, 0}, syn...), unix.IPPROTO_HOPOPTS, Guest6, to6))
	f.Fuzz(func(t *testing.T, proto byte, b []byte) {
		flow, syn, ok := parse(proto, b)
		switch {
		case !ok && (syn || flow != Flow{}):
			t.Errorf("%+v of what is no packet", flow)
		case ok && (!flow.Src.Addr().IsValid() || !flow.Dst.Addr().IsValid()):
			t.Errorf("no addresses: %+v", flow)
		case ok && flow.Dst.Addr().Is4() != (proto == unix.NFPROTO_IPV4):
			t.Errorf("family %d has %v", proto, flow.Dst)
		case syn && flow.Protocol != unix.IPPROTO_TCP:
			t.Errorf("protocol %d begins a connection", flow.Protocol)
		}
	})
}

// FuzzMessage has what the kernel sends: it is not hostile, but a part of it is the
// sandbox's, and of later kernels nothing is known.
func FuzzMessage(f *testing.F) {
	m := message(nil, msgPacket, 0)
	m = attribute(m, attrPacketHeader, 0, 0, 0, 7, 8, 0, 3)
	m = attribute(m, attrPayload, 1, 2, 3)
	f.Add(finish(m))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, body, rest, err := next(b)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("it does not end")
			}
			if q := parseQueued(body, attrPayload); len(q.payload) > len(body) {
				t.Fatal("a payload larger than its message")
			}
			b = rest
		}
	})
}

func TestMessage(t *testing.T) {
	m := message(nil, msgPacket, 0)
	m = attribute(m, attrPacketHeader, 0, 0, 1, 7, 8, 0, 3)
	m = attribute(m, attrPayload, 1, 2, 3)
	m[16] = unix.NFPROTO_IPV6
	if binary.NativeEndian.Uint32(finish(m)) != uint32(len(m)) || len(m)%4 != 0 {
		t.Errorf("%d bytes, and the length %d", len(m), binary.NativeEndian.Uint32(m))
	}
	typ, body, rest, err := next(append(m, m...))
	if err != nil || typ != msgPacket || !bytes.Equal(rest, m) {
		t.Fatalf("type %d, rest %d, %v", typ, len(rest), err)
	}
	q := parseQueued(body, attrPayload)
	if q.family != unix.NFPROTO_IPV6 || q.id != 263 || !q.verdict || !bytes.Equal(q.payload, []byte{1, 2, 3}) {
		t.Errorf("%+v", q)
	}
	if q := parseQueued(body[:4], attrPayload); q.verdict {
		t.Error("there is an id in nothing")
	}
}
