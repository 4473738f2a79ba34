package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// maxFirst bounds the first message, which is there to say hello: what a stranger
// can make us hold before.
const maxFirst = 1 << 20

// wsConn is a proto.Conn over a WebSocket. Reading is the library's; data frames
// are written past it, in batches and straight from where they lie.
type wsConn struct {
	ctx    context.Context
	cancel context.CancelFunc
	ws     *websocket.Conn
	wire   *wireConn
	in     []byte
	share  share // for in
	out    []byte

	greeted bool // the first message has been read
}

func newWSConn(ctx context.Context, ws *websocket.Conn, wire *wireConn, large *semaphore.Weighted) *wsConn {
	ctx, cancel := context.WithCancel(ctx)
	ws.SetReadLimit(maxFirst)
	c := &wsConn{ctx: ctx, cancel: cancel, ws: ws, wire: wire, share: share{of: large}}
	c.shrink()
	return c
}

var errNotUTF8 = errors.New("text message is not UTF-8")

// ReadFrame implements proto.Conn.
func (c *wsConn) ReadFrame() (proto.Frame, error) {
	if cap(c.in) > smallMessage {
		c.shrink()
	}
	f, err := c.read()
	if err != nil {
		c.shrink()
		return nil, ending(err)
	}
	return f, nil
}

func (c *wsConn) read() (proto.Frame, error) {
	kind, r, err := c.ws.Reader(c.ctx)
	if err != nil {
		return nil, err
	}
	c.in = c.in[:proto.HeaderSize]
	for {
		if len(c.in) == cap(c.in) {
			if err := c.grow(); err != nil {
				return nil, err
			}
		}
		if cap(c.in) > smallMessage {
			_ = c.wire.SetReadDeadline(time.Now().Add(largeStall))
		}
		n, err := r.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if cap(c.in) > smallMessage {
		_ = c.wire.SetReadDeadline(time.Time{})
	}
	if !c.greeted {
		c.greeted = true
		c.ws.SetReadLimit(proto.MaxRequest)
	}
	f := proto.Frame(c.in).Seal()
	if kind == websocket.MessageText && !utf8.Valid(f.Body()) {
		return nil, errNotUTF8
	}
	return f, nil
}

// grow doubles the buffer, as far as a message may need it: the library wants to
// read beyond the end to see it.
func (c *wsConn) grow() error {
	size := min(2*cap(c.in), proto.HeaderSize+proto.MaxRequest+1)
	if size > smallMessage {
		if err := c.share.raise(c.ctx, int64(size)); err != nil {
			return err
		}
	}
	grown := make([]byte, len(c.in), size)
	copy(grown, c.in)
	c.in = grown
	return nil
}

// shrink lets go of what a large message needed.
func (c *wsConn) shrink() {
	c.in = make([]byte, proto.HeaderSize, 8<<10)
	c.share.release()
}

// AwaitEnd implements proto.Watcher.
func (c *wsConn) AwaitEnd(stop <-chan struct{}) bool { return c.wire.awaitEnd(stop) }

// ending makes io.EOF of all ways in which a harness just goes away: harnesses
// do not say good-bye.
func ending(err error) error {
	if websocket.CloseStatus(err) != -1 || errors.Is(err, wsframe.ErrEnd) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) {
		return io.EOF
	}
	return err
}

// Close implements proto.Conn.
func (c *wsConn) Close() error {
	c.cancel()
	return c.ws.CloseNow()
}
