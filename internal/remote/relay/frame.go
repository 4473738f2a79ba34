package relay

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kind is what a frame's body is, by its field number.
type Kind uint8

// The kinds of bodies.
const (
	Data      Kind = 5
	Ack       Kind = 6
	Resume    Kind = 7
	Reset     Kind = 8
	Heartbeat Kind = 9
	Handshake Kind = 10
)

// version of the frames, the only one there is.
const version = 1

// Frame is a relay frame. The fields that only acknowledge are not in it: nobody
// acts on them.
type Frame struct {
	Kind     Kind
	StreamID string
	// Seq numbers the records of a stream in one direction, from 0 (Data).
	Seq uint32
	// Payload is a record (Data) or a message of the handshake (Handshake).
	Payload []byte
	// Reason is why a stream ends, for people; nobody vouches for it (Reset).
	Reason string
}

// errFrame says that a message is no frame, or none that means something. Such
// messages are dropped without an answer.
var errFrame = errors.New("relay: not a frame")

// Append appends the encoded frame to dst.
func (f *Frame) Append(dst []byte) []byte {
	if f.Kind == Data {
		return append(appendDataHeader(dst, f.StreamID, f.Seq, len(f.Payload)), f.Payload...)
	}
	dst = appendUint(dst, 1, version)
	dst = appendBytes(dst, 2, f.StreamID)
	size := 0
	switch f.Kind {
	case Handshake:
		size = sizeBytes(1, len(f.Payload))
	case Reset:
		size = sizeBytes(1, len(f.Reason))
	}
	dst = protowire.AppendTag(dst, protowire.Number(f.Kind), protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(size))
	switch f.Kind {
	case Handshake:
		dst = appendBytes(dst, 1, f.Payload)
	case Reset:
		dst = appendBytes(dst, 1, f.Reason)
	}
	return dst
}

// appendDataHeader appends all of a data frame that comes before its payload of
// size bytes.
func appendDataHeader(dst []byte, id string, seq uint32, size int) []byte {
	dst = appendUint(dst, 1, version)
	dst = appendBytes(dst, 2, id)
	dst = protowire.AppendTag(dst, protowire.Number(Data), protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(sizeUint(seq)+sizeUint(1)+sizeBytes(4, size)))
	dst = appendUint(dst, 1, seq)
	dst = appendUint(dst, 3, 1) // segments; the index, 0, is left out
	dst = protowire.AppendTag(dst, 4, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(size))
}

// Fields that have their default value are left out, in size and in fact.

func appendUint(dst []byte, n protowire.Number, v uint32) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.VarintType), uint64(v))
}

func sizeUint(v uint32) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(uint64(v))
}

func appendBytes[T string | []byte](dst []byte, n protowire.Number, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.BytesType), uint64(len(v)))
	return append(dst, v...)
}

func sizeBytes(n protowire.Number, length int) int {
	if length == 0 {
		return 0
	}
	return protowire.SizeTag(n) + protowire.SizeBytes(length)
}

// Parse decodes a frame and checks all that a frame has to be. The payload lies
// in message.
func Parse(message []byte) (Frame, error) {
	var f Frame
	var v uint32
	var body []byte
	err := each(message, func(n protowire.Number, number uint64, part []byte) {
		switch n {
		case 1:
			v = uint32(number)
		case 2:
			f.StreamID = string(part)
		case 5, 6, 7, 8, 9, 10:
			f.Kind, body = Kind(n), part
		}
	})
	if err != nil || v != version || strings.TrimSpace(f.StreamID) == "" {
		return Frame{}, errFrame
	}
	switch f.Kind {
	case Data:
		err = f.parseData(body)
	case Handshake:
		f.Payload, err = only(body)
	case Reset:
		var reason []byte
		reason, err = only(body)
		f.Reason = string(reason)
	case Ack, Resume, Heartbeat:
		err = each(body, func(protowire.Number, uint64, []byte) {})
	default:
		err = errFrame
	}
	if err != nil {
		return Frame{}, errFrame
	}
	return f, nil
}

func (f *Frame) parseData(body []byte) error {
	var index, count uint32
	err := each(body, func(n protowire.Number, number uint64, part []byte) {
		switch n {
		case 1:
			f.Seq = uint32(number)
		case 2:
			index = uint32(number)
		case 3:
			count = uint32(number)
		case 4:
			f.Payload = part
		}
	})
	if err != nil || index != 0 || count != 1 || len(f.Payload) == 0 {
		return errFrame
	}
	return nil
}

// only returns field 1 of a body, which must be there.
func only(body []byte) (value []byte, err error) {
	err = each(body, func(n protowire.Number, _ uint64, part []byte) {
		if n == 1 {
			value = part
		}
	})
	if err == nil && len(value) == 0 {
		err = errFrame
	}
	return value, err
}

// each calls f with the number of each field, and its value if it is a varint, or
// bytes. A known field of the wrong type is an error.
func each(message []byte, f func(n protowire.Number, number uint64, part []byte)) error {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return errFrame
		}
		message = message[size:]
		var number uint64
		var part []byte
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			part, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(n, kind, message)
		}
		if size < 0 {
			return errFrame
		}
		f(n, number, part)
		message = message[size:]
	}
	return nil
}
