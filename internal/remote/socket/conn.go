package socket

import (
	"errors"
	"io"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// MaxMessage is the largest message of a Conn, in bytes: the limit to dial with.
const MaxMessage = proto.MaxRequest

var errNotUTF8 = errors.New("a text message is not UTF-8")

// Conn is a Socket that carries one connection, one text message each message. It
// implements proto.Conn.
type Conn struct {
	*Socket
	out []byte
}

// ReadFrame implements proto.Conn.
func (c *Conn) ReadFrame() (proto.Frame, error) {
	if err := c.read(proto.HeaderSize); err != nil {
		return nil, io.EOF // harnesses do not say good-bye
	}
	f := proto.Frame(c.in).Seal()
	if c.kind == websocket.MessageText && !utf8.Valid(f.Body()) {
		return nil, errNotUTF8
	}
	return f, nil
}

// WriteFrames implements proto.Conn.
func (c *Conn) WriteFrames(frames []byte) error {
	c.out = c.out[:0]
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		if c.out = wsframe.AppendMasked(c.out, wsframe.Text, f.Body()); len(c.out) > roomy {
			if err := c.Write(c.out); err != nil {
				return err
			}
			c.out = nil
		}
	}
	if len(c.out) == 0 {
		return nil
	}
	return c.Write(c.out)
}
