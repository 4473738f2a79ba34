package netns

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Messages of the queue and the log, from nfnetlink_queue.h and nfnetlink_log.h in
// linux/netfilter: a netlink header, a nfgenmsg (family, version, number), and
// attributes.
const (
	headers = unix.SizeofNlMsghdr + 4

	msgPacket  = unix.NFNL_SUBSYS_QUEUE << 8
	msgVerdict = unix.NFNL_SUBSYS_QUEUE<<8 | 1
	msgConfig  = unix.NFNL_SUBSYS_QUEUE<<8 | 2

	msgLogged    = unix.NFNL_SUBSYS_ULOG << 8
	msgLogConfig = unix.NFNL_SUBSYS_ULOG<<8 | 1

	attrPacketHeader  = 1 // id, 32 bits; then what is not needed
	attrVerdictHeader = 2 // verdict, id
	attrMark          = 3
	attrPayload       = 10
	attrLogPayload    = 9

	attrConfigCommand = 1 // command, 8 bits; padding; family, 16 bits
	attrConfigParams  = 2 // bytes to copy, 32 bits; mode, 8 bits
	attrConfigLength  = 3 // packets that wait, 32 bits
	attrLogBatch      = 5 // packets that are told of together, 32 bits

	verdictDrop   = 0 // NF_DROP
	verdictAccept = 1 // NF_ACCEPT

	commandBind = 1
	copyPacket  = 2
)

var errMessage = errors.New("malformed message of the queue")

// message starts one of the type, for the queue.
func message(b []byte, typ, flags uint16) []byte {
	b = append(b, make([]byte, headers)...)
	binary.NativeEndian.PutUint16(b[4:], typ)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	binary.BigEndian.PutUint16(b[18:], queueNumber)
	return b
}

func attribute(b []byte, typ uint16, data ...byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(data)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, data...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

// finish puts the length into the header.
func finish(b []byte) []byte {
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

// next takes the first netlink message off a datagram. Its body is without the header.
func next(b []byte) (typ uint16, body, rest []byte, err error) {
	if len(b) < unix.SizeofNlMsghdr {
		return 0, nil, nil, errMessage
	}
	length := binary.NativeEndian.Uint32(b)
	if length < unix.SizeofNlMsghdr || uint64(length) > uint64(len(b)) {
		return 0, nil, nil, errMessage
	}
	aligned := min(len(b), (int(length)+3)&^3)
	return binary.NativeEndian.Uint16(b[4:]), b[unix.SizeofNlMsghdr:length], b[aligned:], nil
}

// queued is a packet as the kernel tells of it.
type queued struct {
	family  byte
	id      uint32
	verdict bool   // there is an id, to give a verdict for
	payload []byte // its first copyRange bytes
}

// parseQueued reads the body of a message about a packet, whose payload is the
// attribute of that type.
func parseQueued(b []byte, payload uint16) (q queued) {
	if len(b) < headers-unix.SizeofNlMsghdr {
		return queued{}
	}
	q.family = b[0]
	b = b[headers-unix.SizeofNlMsghdr:]
	for len(b) >= unix.SizeofNlAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofNlAttr || length > len(b) {
			break
		}
		data := b[unix.SizeofNlAttr:length]
		switch binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER) {
		case payload:
			q.payload = data
		case attrPacketHeader:
			if len(data) >= 4 {
				q.id, q.verdict = binary.BigEndian.Uint32(data), true
			}
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return q
}
