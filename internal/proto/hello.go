package proto

import (
	"crypto/rand"
	"errors"
	"fmt"
)

// AgentVersion is the version of the gateway's side of the agent's socket.
const AgentVersion = 1

// Hello is the first frame on a connection to an agent: who connects, and what
// the connection may do. It comes from the gateway and never from a harness.
type Hello struct {
	// Peer names the harness in messages about malformed input, as in
	// "exec-server websocket 127.0.0.1:50000".
	Peer string
	// SessionID, if not empty, is the id that a new session gets.
	SessionID string
	// Concurrency is how many requests are worked on at once, at least 1.
	Concurrency int
	// Extensions allows the methods that the reference does not have:
	// process/resize and process/closeStdin.
	Extensions bool
	// Relayed says that the messages come through a relay. There, one that is none
	// of the protocol's ends the connection without a word, and an answer that is larger
	// than MaxRequest fails its request.
	Relayed bool
	// Count says that this is no harness: the agent answers with one frame, its
	// Counts, and closes the connection.
	Count bool
	// Farewell says that this is no harness, and that the agent's time has come:
	// it ends all sessions, clears up, and closes the connection.
	Farewell bool
}

// Frame encodes the hello.
func (h Hello) Frame() Frame {
	f := append(NewFrame(128), `{"version":`...)
	f = append(AppendInt(f, AgentVersion), `,"peer":`...)
	f = append(AppendString(f, h.Peer), `,"sessionId":`...)
	f = append(AppendString(f, h.SessionID), `,"concurrency":`...)
	f = append(AppendUint(f, uint64(max(1, h.Concurrency))), `,"extensions":`...)
	f = AppendBool(f, h.Extensions)
	if h.Relayed {
		f = append(f, `,"relayed":true`...)
	}
	if h.Count {
		f = append(f, `,"count":true`...)
	}
	if h.Farewell {
		f = append(f, `,"farewell":true`...)
	}
	return Frame(append(f, '}')).Seal()
}

// ParseHello decodes a hello.
func ParseHello(text []byte) (Hello, error) {
	v, err := Parse(text)
	if err != nil {
		return Hello{}, err
	}
	p := ParamsOf(v, "Hello")
	version := p.Uint("version")
	h := Hello{
		Peer:        p.String("peer"),
		SessionID:   p.String("sessionId"),
		Concurrency: int(p.Uint("concurrency")),
		Extensions:  p.Bool("extensions"),
		Relayed:     p.BoolOr("relayed", false),
		Count:       p.BoolOr("count", false),
		Farewell:    p.BoolOr("farewell", false),
	}
	if err := p.Err(); err != nil {
		return Hello{}, err
	}
	if version != AgentVersion || h.Concurrency < 1 {
		return Hello{}, errors.New("hello of another version")
	}
	return h, nil
}

// WebSocketPeer is the Peer of a WebSocket connection from that address.
func WebSocketPeer(addr string) string { return "exec-server websocket " + addr }

// StdioPeer is the Peer of a connection over standard input and output.
const StdioPeer = "exec-server stdio"

// NewSessionID makes a session id: a random (version 4) UUID.
func NewSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
