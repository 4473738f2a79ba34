package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/proto"
)

// stdioConn carries one message a line.
type stdioConn struct {
	r   *bufio.Reader
	w   io.Writer
	c   []io.Closer
	in  []byte
	out []byte
}

// Stdio returns the connection over a pair of streams such as standard input
// and output. closers are closed with it.
func Stdio(r io.Reader, w io.Writer, closers ...io.Closer) proto.Conn {
	return &stdioConn{r: bufio.NewReaderSize(r, 64<<10), w: w, c: closers}
}

// ReadFrame implements proto.Conn. Blank lines do not count.
func (c *stdioConn) ReadFrame() (proto.Frame, error) {
	for {
		c.in = append(c.in[:0], 0, 0, 0, 0)
		err := c.line()
		f := proto.Frame(c.in)
		f = f[:proto.HeaderSize+len(bytes.TrimRight(f.Body(), " \t\r\n"))]
		switch {
		case len(f.Body()) > proto.MaxRequest:
			return nil, proto.ErrFrameSize
		case len(f.Body()) > 0 && !utf8.Valid(f.Body()):
			return nil, errNotUTF8
		case len(f.Body()) > 0 && (err == nil || errors.Is(err, io.EOF)):
			return f.Seal(), nil
		case err != nil:
			return nil, err
		}
	}
}

func (c *stdioConn) line() error {
	for {
		part, err := c.r.ReadSlice('\n')
		c.in = append(c.in, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(c.in) > proto.HeaderSize+proto.MaxRequest+1 {
			return proto.ErrFrameSize
		}
	}
}

// WriteFrames implements proto.Conn.
func (c *stdioConn) WriteFrames(frames []byte) error {
	c.out = c.out[:0]
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		c.out = append(append(c.out, f.Body()...), '\n')
	}
	_, err := c.w.Write(c.out)
	return err
}

// Close implements proto.Conn.
func (c *stdioConn) Close() error {
	var errs []error
	for _, closer := range c.c {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}
