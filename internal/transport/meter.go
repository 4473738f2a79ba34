package transport

import (
	"bufio"
	"net"
	"net/http"

	"github.com/exec-server/exec-server/internal/wsframe"
)

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
	m.wire.meter = wsframe.NewMeter()
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	_, _ = m.wire.meter.Pass(early) // if one is too large, the next read tells
	return c, rw, nil
}
