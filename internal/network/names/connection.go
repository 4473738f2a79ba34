package names

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	idleTimeout = 10 * time.Second // of a connection
	// acceptPause is how long nothing is accepted when there are no descriptors left.
	acceptPause = 100 * time.Millisecond
)

// serveConnections answers what comes over TCP, until accepting fails.
func (n *Names) serveConnections(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	conns := make(chan struct{}, maxConns)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(acceptPause):
			}
			continue
		}
		select {
		case conns <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		wg.Go(func() {
			defer func() { <-conns }()
			n.serveConnection(ctx, c)
		})
	}
}

// serveConnection answers the messages of a connection, one after the other.
func (n *Names) serveConnection(ctx context.Context, c net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer func() { _ = c.Close() }()
	for {
		_ = c.SetDeadline(time.Now().Add(idleTimeout))
		message, err := readMessage(c, maxQuery)
		if err != nil {
			return
		}
		answer := n.reply(ctx, message, false)
		if answer == nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(idleTimeout))
		if err := writeMessage(c, answer); err != nil {
			return
		}
	}
}

// readMessage reads one message of a connection (RFC 1035, 4.2.2) of at most limit
// bytes.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint16(size[:]))
	if length > limit {
		return nil, fmt.Errorf("a message of %d bytes", length)
	}
	message := make([]byte, length)
	_, err := io.ReadFull(r, message)
	return message, err
}

// writeMessage writes a message so that it is one segment.
func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}
