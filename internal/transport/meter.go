package transport

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
)

// maxFrame is how many bytes the payload of one frame has at most.
const maxFrame = 16 << 20

var errFrameSize = errors.New("WebSocket frame over 16 MiB")

// frameMeter follows the frames of a peer by their headers, and stops at one that
// announces more than it may have. It copies no payload and judges nothing else:
// the library reads the same bytes and does.
type frameMeter struct {
	limit uint64
	head  [10]byte // of the frame that is beginning, up to its length
	have  int      // bytes in head
	rest  uint64   // bytes of the mask and the payload that are still to come
	over  bool
}

// pass follows p and tells how many of its bytes may be handed on: all, or those
// up to a header that announces too much, after which there is nothing but
// errFrameSize.
func (m *frameMeter) pass(p []byte) (int, error) {
	for i := 0; i < len(p); {
		switch {
		case m.over:
			return i, errFrameSize
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
func (m *frameMeter) begin() {
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

// metered is a response whose connection, once it is upgraded, is metered from
// its first frame on.
type metered struct {
	http.ResponseWriter
	wire *wireConn
}

// Hijack implements http.Hijacker. What came right behind the request has been
// read already.
func (m metered) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(m.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	m.wire.meter = &frameMeter{limit: maxFrame}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	_, _ = m.wire.meter.pass(early) // if one is too large, the next read tells
	return c, rw, nil
}
