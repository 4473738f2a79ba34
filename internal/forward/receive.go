package forward

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/socket"
)

// receiveAll sends the server's messages to the harness until one of the two, or ctx,
// ends.
func receiveAll(ctx context.Context, s *socket.Socket, c proto.Conn, large *semaphore.Weighted) error {
	r := receiver{ctx: ctx, large: large}
	defer r.leave()
	for {
		m, err := s.Next()
		if err != nil {
			return err
		}
		f, err := r.frame(m)
		if err != nil {
			return err
		}
		if err := c.WriteFrames(f); err != nil {
			return err
		}
	}
}

// receiver reads messages into a buffer that it uses again.
type receiver struct {
	ctx   context.Context // of the connection
	buf   []byte
	large *semaphore.Weighted // of all connections: one for each that has a large message
	holds bool                // this one does
}

// enter waits for the turn to have a large message. The rest of it stays with the
// server meanwhile.
func (r *receiver) enter() error {
	if r.holds {
		return nil
	}
	err := r.large.Acquire(r.ctx, 1)
	r.holds = err == nil
	return err
}

func (r *receiver) leave() {
	if r.holds {
		r.large.Release(1)
		r.holds = false
	}
}

const (
	firstRoom = 8 << 10
	// roomy is the size of a buffer that is not kept for the next message.
	roomy = 512 << 10
	// ends is how much is kept of either end of a message that is too large.
	ends = 64 << 10
)

// frame reads a message. One that is too large for a relay is not kept: it becomes
// the error that its request fails with.
func (r *receiver) frame(m io.Reader) (proto.Frame, error) {
	if cap(r.buf) > roomy || r.buf == nil {
		r.buf = make([]byte, 0, firstRoom)
	}
	r.leave() // what it held is sent
	b := r.buf[:proto.HeaderSize]
	for {
		if len(b) > proto.HeaderSize+proto.MaxRequest {
			return excess(b[proto.HeaderSize:], m)
		}
		if len(b) > roomy {
			if err := r.enter(); err != nil {
				return nil, err
			}
		}
		b = slices.Grow(b, 512)
		n, err := m.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if r.buf = b; len(b) > proto.HeaderSize+proto.MaxRequest {
		return excess(b[proto.HeaderSize:], m)
	}
	return proto.Frame(b).Seal(), nil
}

// excess reads the rest of a message, keeps the last of it only, and answers in the
// place of the message.
func excess(b []byte, rest io.Reader) (proto.Frame, error) {
	head, size := slices.Clone(b[:ends]), len(b)
	tail, buf := slices.Clone(b[len(b)-ends:]), make([]byte, ends)
	for {
		n, err := rest.Read(buf)
		size += n
		tail = append(tail, buf[:n]...)
		tail = tail[:copy(tail, tail[max(0, len(tail)-ends):])]
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	id, ok := idOf(head, tail)
	if !ok {
		return nil, broken{fmt.Errorf("the server sends a message of %d bytes, and at most %d can be relayed", size, proto.MaxRequest)}
	}
	return proto.ErrorFrame(id, proto.Errorf(proto.CodeInternal, "the answer has %d bytes, and messages of at most %d can be relayed", size, proto.MaxRequest)), nil
}

// The id of an answer is its first member or its last. What looks like this at the
// end of a message is nothing else: neither a string can have such quotes, nor an
// object inside such an end.
var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?[0-9]+|"(?:[^"\\]|\\.)*")\s*,`)
	lastID  = regexp.MustCompile(`,\s*"id"\s*:\s*(-?[0-9]+|"(?:[^"\\]|\\.)*")\s*\}\s*$`)
)

// idOf finds the id of an answer by its beginning and its end.
func idOf(head, tail []byte) (proto.Value, bool) {
	found := firstID.FindSubmatch(head)
	if found == nil {
		found = lastID.FindSubmatch(tail)
	}
	if found == nil {
		return proto.Value{}, false
	}
	m, err := proto.ParseMessage([]byte(`{"id":` + string(found[1]) + `,"result":0}`))
	return m.ID, err == nil
}
