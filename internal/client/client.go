// Package client is the harness's side of the protocol, for the commands of
// this program that use an environment, and for tests.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
)

// Client speaks to one environment over one connection.
type Client struct {
	conn     proto.Conn
	onNotify func(method string, params proto.Value)
	writing  sync.Mutex // makes frames whole; not held by the reader
	done     chan struct{}

	mu      sync.Mutex // guards all below
	next    int64
	pending map[string]chan answer
	err     error // why there will be no more answers
}

type answer struct {
	result proto.Value
	err    error
}

// New starts a client on c, which it owns. onNotify, which may be nil, gets the
// notifications in their order; the params are valid until it returns.
func New(c proto.Conn, onNotify func(method string, params proto.Value)) *Client {
	cl := &Client{conn: c, onNotify: onNotify, pending: make(map[string]chan answer), done: make(chan struct{})}
	go cl.read()
	return cl
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Initialize does the handshake and returns the session's id. resume is "" for a
// new session.
func (c *Client) Initialize(ctx context.Context, name, resume string) (session string, err error) {
	params := map[string]any{"clientName": name}
	if resume != "" {
		params["resumeSessionId"] = resume
	}
	result, err := c.Call(ctx, "initialize", params)
	if err != nil {
		return "", err
	}
	return result.Get("sessionId").Str(), c.send(map[string]any{"method": "initialized"})
}

// Call sends a request and waits for its answer. An error answer is an
// *proto.Error.
func (c *Client) Call(ctx context.Context, method string, params any) (proto.Value, error) {
	ch := make(chan answer, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	key := fmt.Sprint(id)
	if c.err != nil {
		defer c.mu.Unlock()
		return proto.Value{}, c.err
	}
	c.pending[key] = ch
	c.mu.Unlock()
	if err := c.send(map[string]any{"id": id, "method": method, "params": params}); err != nil {
		return proto.Value{}, fmt.Errorf("send %s: %w", method, err)
	}
	select {
	case a := <-ch:
		return a.result, a.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.pending, key)
		c.mu.Unlock()
		return proto.Value{}, ctx.Err()
	}
}

func (c *Client) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.conn.WriteFrames(proto.FrameOf(text))
}

func (c *Client) read() {
	var err error
	for err == nil {
		var f proto.Frame
		if f, err = c.conn.ReadFrame(); err == nil {
			err = c.dispatch(f)
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the server has ended the connection")
	}
	_ = c.conn.Close()
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	for key, ch := range c.pending {
		delete(c.pending, key)
		ch <- answer{err: err}
	}
}

func (c *Client) dispatch(f proto.Frame) error {
	m, err := proto.ParseMessage(f.Body())
	if err != nil {
		return fmt.Errorf("malformed message from the server: %w", err)
	}
	if m.Kind == proto.Notification {
		if c.onNotify != nil {
			c.onNotify(m.Method, m.Params)
		}
		return nil
	}
	if m.Kind != proto.Answer {
		return nil
	}
	// The caller outlives the frame.
	text := append([]byte(nil), f.Body()...)
	v, err := proto.Parse(text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	ch := c.pending[string(v.Get("id").Raw())]
	delete(c.pending, string(v.Get("id").Raw()))
	c.mu.Unlock()
	if ch == nil {
		return nil
	}
	if e := v.Get("error"); e.Kind == proto.Object {
		code, _ := e.Get("code").Int64()
		ch <- answer{err: &proto.Error{Code: int(code), Message: e.Get("message").Str(), Kind: e.Get("data").Get("kind").Str()}}
		return nil
	}
	ch <- answer{result: v.Get("result")}
	return nil
}
