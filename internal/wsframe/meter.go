package wsframe

import (
	"encoding/binary"
	"errors"
	"io"
)

// MaxPayload is how many bytes the payload of one frame has at most, as with the
// reference.
const MaxPayload = 16 << 20

// ErrSize says that a frame announced more than it may have.
var ErrSize = errors.New("WebSocket frame over 16 MiB")

// ErrEnd says that the connection ended. The library takes io.EOF within a payload
// for the end of the message.
var ErrEnd = errors.New("the connection was closed")

// Meter follows the frames of a peer by their headers, and stops at one that
// announces more than MaxPayload. It copies no payload and judges nothing else: the
// library reads the same bytes and does.
type Meter struct {
	limit uint64
	head  [10]byte // of the frame that is beginning, up to its length
	have  int      // bytes in head
	rest  uint64   // bytes of the mask and the payload that are still to come
	over  bool
}

// NewMeter makes a meter for a connection that begins with a frame.
func NewMeter() *Meter { return &Meter{limit: MaxPayload} }

// Read reads from r, up to a header that announces too much: then it returns
// ErrSize without waiting for a payload. The end of r is ErrEnd.
func (m *Meter) Read(r io.Reader, p []byte) (int, error) {
	if m.over {
		return 0, ErrSize
	}
	n, err := r.Read(p)
	n, over := m.Pass(p[:n])
	switch {
	case over != nil && n == 0:
		err = over
	case err == io.EOF:
		err = ErrEnd
	}
	return n, err
}

// Pass follows p and tells how many of its bytes may be handed on: all, or those up
// to a header that announces too much, after which there is nothing but ErrSize.
func (m *Meter) Pass(p []byte) (int, error) {
	for i := 0; i < len(p); {
		switch {
		case m.over:
			return i, ErrSize
		case m.rest > 0:
			n := min(m.rest, uint64(len(p)-i))
			m.rest -= n
			i += int(n)
		default:
			m.head[m.have] = p[i]
			m.have++
			i++
			m.begin()
		}
	}
	return len(p), nil
}

// begin reads the header once it is all there.
func (m *Meter) begin() {
	if m.have < 2 {
		return
	}
	size, length := uint64(m.head[1]&0x7f), 2
	switch {
	case size == 126 && m.have < 4, size == 127 && m.have < 10:
		return
	case size == 126:
		size, length = uint64(binary.BigEndian.Uint16(m.head[2:])), 4
	case size == 127:
		size, length = binary.BigEndian.Uint64(m.head[2:]), 10
	}
	if m.have != length {
		return
	}
	m.have, m.over = 0, size > m.limit
	if m.rest = size; m.head[1]&0x80 != 0 {
		m.rest += 4 // the mask
	}
}
