package agent

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// nobody is a peer that sends prepared messages, and keeps the answers.
type nobody struct {
	messages [][]byte
	answers  [][]byte
	mu       sync.Mutex // guards answers
}

func (n *nobody) ReadFrame() (proto.Frame, error) {
	if len(n.messages) == 0 {
		return nil, io.EOF
	}
	m := n.messages[0]
	n.messages = n.messages[1:]
	return proto.FrameOf(m), nil
}

func (n *nobody) WriteFrames(frames []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(frames) > 0 {
		var f proto.Frame
		f, frames = proto.NextFrame(frames)
		n.answers = append(n.answers, append([]byte(nil), f.Body()...))
	}
	return nil
}

func (n *nobody) Close() error { return nil }

// FuzzDecoders gives any params to the decoder of any method. It must end soon,
// without a panic; refuse with an error that has a place on the wire; and judge
// the same params in the same way however they are written.
func FuzzDecoders(f *testing.F) {
	for name, m := range valid {
		f.Add(name, []byte(m.params))
	}
	for _, seed := range []string{
		`{"processId":"p","argv":["sh","-c","x"],"cwd":"file:///w","env":{"A":"b"},"tty":true,"pipeStdin":true,"arg0":"x","metadata":{"threadId":"0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000","toolCallId":""}}`,
		`{"processId":"p","argv":["x"],"cwd":"file:///w","env":{},"tty":false,"envPolicy":{"inherit":"core","ignoreDefaultExcludes":false,"exclude":["*K?Y*"],"set":{"A":"b"},"includeOnly":["P*"]},"shellSnapshot":{"scopeId":"s","shell":{"name":"bash","path":"/bin/bash"}}}`,
		`{"processId":"p","argv":["x"],"cwd":"file:///C:/w","env":{},"tty":false,"sandbox":{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"project_roots","subpath":".git"}},"access":"read","missing_path_behavior":"skip"}]},"network":"restricted"},"cwd":"file:///w","workspaceRoots":["file:///w"],"windowsSandboxLevel":"disabled","useLegacyLandlock":false}}`,
		`{"processId":"p","argv":["x"],"cwd":"file:///w","env":{},"tty":false,"enforceManagedNetwork":true,"managedNetwork":{"loopbackPorts":[1,65535],"allowLocalBinding":true},"networkProxy":{"proxy":{"enabled":true,"enableSocks5":true,"enableSocks5Udp":false,"allowUpstreamProxy":false,"dangerouslyAllowAllUnixSockets":false,"mode":"full","allowLocalBinding":false,"domains":{"*.example.com":"allow"}},"policyDecisionTimeoutMs":1}}`,
	} {
		f.Add("process/start", []byte(seed))
	}
	f.Add("process/read", []byte(`{"processId":"p","afterSeq":18446744073709551615,"maxBytes":0,"waitMs":18446744073709551615}`))
	f.Add("process/write", []byte(`{"processId":"p","chunk":"aGVsbG8=","writeId":"é"}`))
	f.Add("initialize", []byte(`{"clientName":"x","resumeSessionId":null}`))
	f.Fuzz(func(t *testing.T, name string, params []byte) {
		m, known := methods[name]
		v, err := proto.Parse(params)
		if !known || strings.HasPrefix(name, "test/") || err != nil {
			return
		}
		began := time.Now()
		want := verdict(t, m, v)
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("%s takes %v for %d bytes", name, took, len(params))
		}
		again, err := proto.Parse(rewritten(v))
		if err != nil {
			t.Fatalf("%s is written %s: %v", params, rewritten(v), err)
		}
		if got := verdict(t, m, again); got != want {
			t.Fatalf("%s %s: %q, and written another way: %q", name, params, want, got)
		}
	})
}

// verdict is what a decoder says.
func verdict(t *testing.T, m method, v proto.Value) string {
	op, err := m.decode(v)
	if err == nil {
		if op.do == nil {
			t.Fatal("neither operation nor error")
		}
		return ""
	}
	e := proto.WireError(err)
	if e.Code != proto.CodeInvalidParams && e.Code != proto.CodeInvalidRequest {
		t.Fatalf("refused with %d %s", e.Code, e.Message)
	}
	frame := proto.ErrorFrame(proto.Value{}, e)
	if _, err := proto.ParseMessage(frame.Body()); err != nil {
		t.Fatalf("the refusal cannot be sent: %v: %q", err, frame.Body())
	}
	return fmt.Sprint(e.Code, e.Message)
}

// rewritten is the same value in other letters.
func rewritten(v proto.Value) []byte {
	switch v.Kind {
	case proto.String:
		return escaped(v.Str())
	case proto.Number:
		return append([]byte(" "), v.Raw()...)
	case proto.True:
		return []byte("true ")
	case proto.False:
		return []byte("\nfalse")
	case proto.Array, proto.Object:
		open, end := "[", "]"
		if v.Kind == proto.Object {
			open, end = "{", "}"
		}
		out := []byte(open)
		for i := range v.Len() {
			if i > 0 {
				out = append(out, " , "...)
			}
			if v.Kind == proto.Object {
				out = append(append(out, escaped(v.Key(i))...), ':')
			}
			out = append(out, rewritten(v.At(i))...)
		}
		return append(out, end...)
	}
	return []byte("null")
}

func escaped(s string) []byte {
	out := []byte{'"'}
	for _, r := range s {
		if r < 1<<16 {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}

// FuzzConnection lets a stranger say anything, line by line. Whatever it is, the
// connection ends with the stranger, each answer is a message, and requests are
// answered once.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientName\":\"x\"}}\n{\"method\":\"initialized\"}\n{\"id\":2,\"method\":\"environment/info\"}"))
	f.Add([]byte("{\"id\":\"a\",\"method\":\"x\"}\n[]\n{\"id\":1,\"result\":null}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := &nobody{}
		requests := 0
		for line := range strings.SplitSeq(string(text), "\n") {
			m, err := proto.ParseMessage([]byte(line))
			if err == nil && m.Kind == proto.Request && !harmless(m.Method) {
				return
			}
			n.messages = append(n.messages, []byte(line))
			if err != nil || m.Kind == proto.Request {
				requests++
			}
		}
		s := New(Options{Cwd: "/", Home: "/"})
		defer s.Close()
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(n, proto.Hello{Peer: peerName}) }()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("the connection does not end")
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.answers) > requests {
			t.Fatalf("%d answers to %d requests", len(n.answers), requests)
		}
		for _, a := range n.answers {
			if m, err := proto.ParseMessage(a); err != nil || m.Kind != proto.Answer {
				t.Fatalf("answered %q: %v", a, err)
			}
		}
	})
}

// harmless says whether a fuzzer may call a method on the machine that it runs
// on.
func harmless(method string) bool {
	_, known := methods[method]
	switch method {
	case "initialize", "environment/info", "environment/status", "process/read", "process/write", "process/signal", "process/terminate", "fs/close", "fs/readBlock":
		return true
	}
	return !known
}
