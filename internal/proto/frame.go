package proto

import (
	"encoding/binary"
	"errors"
	"io"
)

// HeaderSize is the number of bytes in front of a message inside a Frame.
const HeaderSize = 4

// MaxRequest is the largest message, in bytes, that a peer may send us.
const MaxRequest = 64 << 20

// MaxAnswer bounds a message that an agent may send: an fs/readFile answer of
// 512 MiB of contents in base64, and room for the envelope.
const MaxAnswer = 720 << 20

// ErrFrameSize says that a length prefix was over the reader's limit.
var ErrFrameSize = errors.New("frame exceeds the size limit")

// Frame is one JSON message behind a 4-byte little-endian length. Messages
// travel in this form from the transport to the agent's socket and back, so
// that no hop has to copy them to add or strip a header.
type Frame []byte

// NewFrame returns an empty frame that a message of about n bytes can be
// appended to; Seal fills in its length.
func NewFrame(n int) Frame { return make(Frame, HeaderSize, HeaderSize+n) }

// Seal writes the length of everything behind the header into the header.
func (f Frame) Seal() Frame {
	binary.LittleEndian.PutUint32(f, uint32(len(f)-HeaderSize))
	return f
}

// OpenFrame begins a frame behind those in dst. The message is appended to what
// it returns, and CloseFrame(dst, start) ends it.
func OpenFrame(dst []byte) (frames []byte, start int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// CloseFrame fills in the length of the frame that begins at start.
func CloseFrame(frames []byte, start int) []byte {
	Frame(frames[start:]).Seal()
	return frames
}

// Body is the message without its header.
func (f Frame) Body() []byte { return f[HeaderSize:] }

// FrameOf returns msg, copied, as a frame.
func FrameOf(msg []byte) Frame { return append(NewFrame(len(msg)), msg...).Seal() }

// NextFrame splits the first whole frame off buf. It returns nil if buf does
// not hold a whole one.
func NextFrame(buf []byte) (f Frame, rest []byte) {
	if len(buf) < HeaderSize {
		return nil, buf
	}
	n := HeaderSize + int(binary.LittleEndian.Uint32(buf))
	if len(buf) < n {
		return nil, buf
	}
	return Frame(buf[:n:n]), buf[n:]
}

// Conn carries whole messages. One goroutine may read while another writes;
// neither call may be made by two goroutines at once.
type Conn interface {
	// ReadFrame returns the next message. The frame is the caller's until the
	// next call. io.EOF means that the peer went away in an orderly manner.
	ReadFrame() (Frame, error)
	// WriteFrames sends one or more whole frames that lie behind each other.
	WriteFrames(frames []byte) error
	// Close ends both directions; it may be called at any time, repeatedly.
	Close() error
}

// Watcher is a Conn that can tell that its peer is gone while nobody reads from
// it, because too much waits already.
type Watcher interface {
	Conn
	// AwaitEnd returns true when the peer has ended the connection or its half of
	// it, or the connection was closed; and false if stop was closed before. What
	// is unread stays unread. The caller closes stop sooner or later. It is called
	// in place of ReadFrame, never beside it.
	AwaitEnd(stop <-chan struct{}) bool
}

// StreamConn is a Conn over a byte stream such as a unix socket.
type StreamConn struct {
	rw    io.ReadWriteCloser
	limit int
	buf   []byte
	r, w  int // unread bytes are buf[r:w]
}

// NewStreamConn frames messages on rw. A message of over limit bytes ends the
// reading side with ErrFrameSize.
func NewStreamConn(rw io.ReadWriteCloser, limit int) *StreamConn {
	return &StreamConn{rw: rw, limit: limit, buf: make([]byte, 64<<10)}
}

// ReadFrame implements Conn.
func (c *StreamConn) ReadFrame() (Frame, error) {
	for {
		if c.w-c.r >= HeaderSize {
			size := int(binary.LittleEndian.Uint32(c.buf[c.r:]))
			if size > c.limit {
				return nil, ErrFrameSize
			}
			if n := HeaderSize + size; c.w-c.r >= n {
				f := Frame(c.buf[c.r : c.r+n : c.r+n])
				c.r += n
				return f, nil
			} else if err := c.room(n); err != nil {
				return nil, err
			}
		} else if err := c.room(HeaderSize); err != nil {
			return nil, err
		}
		n, err := c.rw.Read(c.buf[c.w:])
		c.w += n
		if err != nil && n == 0 {
			if err == io.EOF && c.w > c.r {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// room makes the unread bytes movable and the buffer large enough for more.
// It grows with what has arrived, not with what a length prefix promises.
func (c *StreamConn) room(want int) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > 1<<20 && want <= 64<<10 {
			c.buf = make([]byte, 64<<10)
		}
	}
	if c.r > 0 && (c.w == len(c.buf) || c.r+want > len(c.buf)) {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		size := min(2*len(c.buf), HeaderSize+c.limit)
		if size <= len(c.buf) {
			return ErrFrameSize
		}
		grown := make([]byte, size)
		copy(grown, c.buf[:c.w])
		c.buf = grown
	}
	return nil
}

// ReadFrames returns the next message and all whole ones that arrived with it.
// It lets a splice move many at once.
func (c *StreamConn) ReadFrames() ([]byte, error) {
	first, err := c.ReadFrame()
	if err != nil {
		return nil, err
	}
	start := c.r - len(first)
	for c.w-c.r >= HeaderSize {
		n := HeaderSize + int(binary.LittleEndian.Uint32(c.buf[c.r:]))
		if n > HeaderSize+c.limit || c.w-c.r < n {
			break
		}
		c.r += n
	}
	return c.buf[start:c.r:c.r], nil
}

// WriteFrames implements Conn.
func (c *StreamConn) WriteFrames(frames []byte) error {
	_, err := c.rw.Write(frames)
	return err
}

// Close implements Conn.
func (c *StreamConn) Close() error { return c.rw.Close() }
