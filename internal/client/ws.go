package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
)

// Dial opens a connection to an exec-server's WebSocket listener.
func Dial(ctx context.Context, url string, header http.Header) (proto.Conn, error) {
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", url, err)
	}
	ws.SetReadLimit(proto.MaxAnswer)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &wsConn{ctx: ctx, cancel: cancel, ws: ws}, nil
}

type wsConn struct {
	ctx    context.Context
	cancel context.CancelFunc
	ws     *websocket.Conn
	in     []byte
}

// ReadFrame implements proto.Conn.
func (c *wsConn) ReadFrame() (proto.Frame, error) {
	_, r, err := c.ws.Reader(c.ctx)
	if err != nil {
		return nil, err
	}
	c.in = append(c.in[:0], 0, 0, 0, 0)
	for {
		if len(c.in) == cap(c.in) {
			c.in = slices.Grow(c.in, max(4<<10, len(c.in)))
		}
		n, err := r.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if err == io.EOF {
			return proto.Frame(c.in).Seal(), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// WriteFrames implements proto.Conn.
func (c *wsConn) WriteFrames(frames []byte) error {
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		if err := c.ws.Write(c.ctx, websocket.MessageText, f.Body()); err != nil {
			return err
		}
	}
	return nil
}

// Close implements proto.Conn.
func (c *wsConn) Close() error {
	c.cancel()
	return c.ws.CloseNow()
}
