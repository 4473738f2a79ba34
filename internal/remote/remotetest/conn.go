package remotetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/relay"
)

const (
	// MaxRecord is how many bytes of plaintext a record has at most.
	MaxRecord = 60 << 10
	// MaxAhead is how far ahead of the next record one may be that waits for it.
	MaxAhead            = 64
	maxMessageInRecords = 64 << 20
)

// Conn is the encrypted connection over a stream. It implements proto.Conn.
type Conn struct {
	*Stream
	channel *noise.Channel

	sent uint32 // records
	out  []byte // what is being sealed

	taken   uint32 // records
	waiting map[uint32][]byte
	in      []byte // plaintext; in[r:] is unread
	r       int
	missing int // bytes of the message that the last record left unfinished
}

// Record seals a plaintext as the next record, and does not send it.
func (c *Conn) Record(plaintext []byte) (relay.Frame, error) {
	record, err := c.channel.Seal(nil, plaintext)
	f := relay.Frame{Kind: relay.Data, StreamID: c.ID, Seq: c.sent, Payload: record}
	c.sent++
	return f, err
}

// SendRecord sends a plaintext as the next record.
func (c *Conn) SendRecord(plaintext []byte) error {
	f, err := c.Record(plaintext)
	if err != nil {
		return err
	}
	return c.Send(f)
}

// WriteFrames implements proto.Conn. Each message begins a record.
func (c *Conn) WriteFrames(frames []byte) error {
	chunk := c.socket.peer.look(c.socket.env).Chunk
	if chunk <= 0 || chunk > MaxRecord {
		chunk = MaxRecord
	}
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		c.out = binary.BigEndian.AppendUint32(c.out[:0], uint32(len(f.Body())))
		c.out = append(c.out, f.Body()...)
		for part := range slices.Chunk(c.out, chunk) {
			if err := c.SendRecord(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadFrame implements proto.Conn. The end of a stream is ErrReset, ErrLost or
// ErrClosed.
func (c *Conn) ReadFrame() (proto.Frame, error) {
	for {
		if f, err := c.message(); f != nil || err != nil {
			return f, err
		}
		if err := c.more(); err != nil {
			return nil, err
		}
	}
}

// message takes a whole message out of what has come; nil if there is none.
func (c *Conn) message() (proto.Frame, error) {
	unread := c.in[c.r:]
	if len(unread) < 4 {
		return nil, nil
	}
	size := int(binary.BigEndian.Uint32(unread))
	if size == 0 || size > maxMessageInRecords {
		return nil, fmt.Errorf("remotetest: the executor sends a message of %d bytes", size)
	}
	if len(unread) < 4+size {
		return nil, nil
	}
	c.r += 4 + size
	return proto.Frame(unread[: 4+size : 4+size]).Seal(), nil
}

// more waits for a data frame and opens all records whose turn has come.
func (c *Conn) more() error {
	f, err := c.Next(context.Background())
	if err != nil {
		return err
	}
	switch f.Kind {
	case relay.Reset:
		return fmt.Errorf("%w: %s", ErrReset, f.Reason)
	case relay.Handshake:
		return errors.New("remotetest: another handshake in an open stream")
	}
	if f.Seq < c.taken || c.waiting[f.Seq] != nil {
		return nil
	}
	if f.Seq-c.taken > MaxAhead {
		return fmt.Errorf("remotetest: record %d comes where %d is next", f.Seq, c.taken)
	}
	if c.waiting == nil {
		c.waiting = map[uint32][]byte{}
	}
	c.waiting[f.Seq] = f.Payload
	if c.r > 0 { // nothing of it is in use any more
		c.in, c.r = c.in[:copy(c.in, c.in[c.r:])], 0
	}
	for c.waiting[c.taken] != nil {
		record, before := c.waiting[c.taken], len(c.in)
		delete(c.waiting, c.taken)
		c.taken++
		// Opening makes room for one record only, again and again.
		c.in = slices.Grow(c.in, len(record))
		if c.in, err = c.channel.Open(c.in, record); err != nil {
			return err
		}
		if err := c.check(c.in[before:]); err != nil {
			return err
		}
	}
	return nil
}

// check holds the executor to what it does: records are not too large, and each
// message begins one.
func (c *Conn) check(text []byte) error {
	if len(text) > MaxRecord {
		return fmt.Errorf("remotetest: the executor sends a record of %d bytes", len(text))
	}
	if c.missing == 0 && len(text) >= 4 {
		c.missing = 4 + int(binary.BigEndian.Uint32(text))
	}
	if c.missing -= len(text); c.missing < 0 {
		return errors.New("remotetest: a message does not begin a record")
	}
	return nil
}

// Close implements proto.Conn: the executor is told that the harness is gone.
func (c *Conn) Close() error {
	c.Stream.Close()
	return nil
}
