package transport

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/proto"
)

// ReadFrame implements proto.Conn. Blank lines do not count.
func (c *stdioConn) ReadFrame() (proto.Frame, error) {
	for {
		f, err := c.line()
		switch {
		case err != nil:
			return nil, err
		case !utf8.Valid(f.Body()):
			return nil, errNotUTF8
		case len(bytes.TrimSpace(f.Body())) > 0:
			return f.Seal(), nil
		}
	}
}

// line returns the next line without its end, as an unsealed frame.
func (c *stdioConn) line() (proto.Frame, error) {
	for {
		if i := bytes.IndexByte(c.buf[c.seen:], '\n'); i >= 0 {
			return c.cut(c.seen+i, 1)
		}
		c.seen = len(c.buf)
		switch n := len(c.buf) - c.from; {
		case n > proto.MaxRequest+1, n > proto.MaxRequest && c.buf[len(c.buf)-1] != '\r':
			return nil, proto.ErrFrameSize
		case c.ended && n == 0:
			return nil, io.EOF
		case c.ended: // a last line needs no end
			return c.cut(len(c.buf), 0)
		}
		if err := c.fill(); errors.Is(err, io.EOF) {
			c.ended = true
		} else if err != nil {
			return nil, err
		}
	}
}

// cut takes what is before end, and the newline behind it, out of the buffer.
func (c *stdioConn) cut(end, newline int) (proto.Frame, error) {
	f := proto.Frame(c.buf[c.from-proto.HeaderSize : end])
	c.from, c.seen = end+newline, end+newline
	f = f[:proto.HeaderSize+len(bytes.TrimSuffix(f.Body(), []byte("\r")))]
	if len(f.Body()) > proto.MaxRequest {
		return nil, proto.ErrFrameSize
	}
	return f[:len(f):len(f)], nil
}

// fill reads more. It moves what is unread to the front of the buffer, and does
// not keep what one large line needed.
func (c *stdioConn) fill() error {
	switch rest := c.buf[c.from:]; {
	case len(rest) == 0 && cap(c.buf) > smallMessage:
		c.reset(nil)
	case len(c.buf) == cap(c.buf) && c.from > proto.HeaderSize:
		c.reset(rest)
	case len(c.buf) == cap(c.buf):
		grown := make([]byte, len(c.buf), min(2*cap(c.buf), proto.HeaderSize+proto.MaxRequest+2))
		copy(grown, c.buf)
		c.buf = grown
	}
	n, err := c.r.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

func (c *stdioConn) reset(rest []byte) {
	buf := c.buf
	if cap(buf) > smallMessage || buf == nil {
		buf = make([]byte, 0, max(64<<10, 2*len(rest)))
	}
	buf = buf[:proto.HeaderSize+len(rest)]
	copy(buf[proto.HeaderSize:], rest)
	c.buf, c.from, c.seen = buf, proto.HeaderSize, len(buf)
}
