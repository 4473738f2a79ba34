package transport

import (
	"io"
	"net"
	"slices"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// copyBelow is the size under which a frame is copied beside its neighbours, so
// that many go out in one system call.
const copyBelow = 32 << 10

// WriteFrames implements proto.Conn: one text message a frame, unfragmented.
func (c *wsConn) WriteFrames(frames []byte) error {
	var large net.Buffers
	c.out = c.out[:0]
	from := 0 // of what is in out and not in large yet
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		body := f.Body()
		c.out = wsframe.AppendHeader(c.out, wsframe.Text, len(body))
		if len(body) < copyBelow {
			c.out = append(c.out, body...)
			continue
		}
		// What lies in out may move when it grows, hence the copy of the rest.
		large = append(large, slices.Clone(c.out[from:]), body)
		from = len(c.out)
	}
	if large == nil {
		_, err := c.wire.Write(c.out)
		return err
	}
	return c.wire.writeAll(append(large, c.out[from:]))
}
