package agent

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestMalformedMessagesAreAnswered(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{})
	for _, test := range []struct{ text, want string }{
		{``, "EOF while parsing a value at line 1 column 0"},
		{`x`, "expected value at line 1 column 1"},
		{`[]`, "expected a JSON-RPC object"},
		{`[{"id":1,"method":"environment/status"}]`, "expected a JSON-RPC object"},
		{`null`, "expected a JSON-RPC object"},
		{`{}`, "expected a JSON-RPC object"},
		{`{"id":null,"method":"m"}`, "expected a JSON-RPC object"},
		{`{"id":1.0,"method":"m"}`, "expected a JSON-RPC object"},
		{`{"id":1,"method":"m","id":1}`, "duplicate JSON object key `id`"},
		{`{"id":1,"method":"m","params":{"a":{"b":1,"b":2}}}`, "duplicate JSON object key `b`"},
		{`{"id":1,"method":"m","params":[` + strings.Repeat("0,", proto.MaxValues) + `0]}`, "JSON-RPC message exceeds the limit of 262144 JSON values"},
	} {
		h.expect(test.text, `{"error":{"code":-32600,"message":"failed to parse websocket JSON-RPC message from `+peerName+`: `+test.want+`"},"id":-1}`)
	}
	h.initialize("")
	h.alive()
}

func TestMalformedMessagesOverStdio(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{Peer: proto.StdioPeer})
	h.expect(`x`, `{"error":{"code":-32600,"message":"failed to parse JSON-RPC message from exec-server stdio: expected value at line 1 column 1"},"id":-1}`)
}

func TestIDsAreEchoedAsTheyCame(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	for _, id := range []string{`0`, `-7`, `9223372036854775807`, `""`, `"12"`, `"\u00e9\n😀"`} {
		h.expect(`{"jsonrpc":"2.0","id":`+id+`,"method":"environment/status","trace":{"traceparent":1},"more":[]}`, `{"id":`+id+`,"result":{"status":"ready"}}`)
		h.expect(`{"id":`+id+`,"method":"environment/status","params":1}`, `{"error":{"code":-32602,"message":"invalid type: number, expected unit"},"id":`+id+`}`)
	}
	// Nobody checks that they are unique.
	h.send(`{"id":1,"method":"environment/status"}`)
	h.expect(`{"id":1,"method":"environment/status"}`, `{"id":1,"result":{"status":"ready"}}`)
}

func TestAFrameOverTheLimitEndsTheConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	h := connectOver(t, newServer(t, Options{}), proto.Hello{}, proto.NewStreamConn(ours, proto.MaxAnswer), proto.NewStreamConn(theirs, proto.MaxRequest))
	if _, err := ours.Write(binary.LittleEndian.AppendUint32(nil, proto.MaxRequest+1)); err != nil {
		t.Fatal(err)
	}
	h.gone()
}

// Whatever a harness sends, the server answers it or ends that connection.
func TestNoiseHarmsOnlyItsOwnConnection(t *testing.T) {
	s := newServer(t, Options{})
	other := ready(t, s, proto.Hello{})
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{`{`, `}`, `[`, `]`, `"id"`, `:`, `,`, `1`, `"method"`, `"initialize"`, `"params"`, `null`, `"clientName"`, `"process/read"`, `"x"`, `-`, `\`, "\xff"}
	for _, concurrency := range []int{1, 3} {
		for range 20 {
			h := connect(t, s, proto.Hello{Concurrency: concurrency})
			for range 50 {
				var text strings.Builder
				for range r.IntN(20) {
					text.WriteString(words[r.IntN(len(words))])
				}
				if h.conn.WriteFrames(proto.FrameOf([]byte(text.String()))) != nil {
					break
				}
			}
			h.leave()
		}
	}
	other.alive()
}

func TestTheEndOfAConnectionEndsServe(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{})
	_ = h.conn.Close()
	select {
	case err := <-h.served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}
