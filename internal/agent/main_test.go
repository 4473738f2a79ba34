package agent

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// patience bounds every wait for something that has to come.
const patience = 20 * time.Second

const peerName = "exec-server websocket 127.0.0.1:5"

// holds has a channel for each thing that a test/hold request waits for.
var holds = map[string]chan struct{}{}

// Two methods exist in tests alone: test/hold, which waits until its hold is
// closed, or the connection, and test/big, whose answer is large.
func TestMain(m *testing.M) {
	if path := os.Getenv(listenEnv); path != "" {
		testListen(path)
	}
	if mode := os.Getenv(helperEnv); mode != "" {
		testHelper(mode)
	}
	hold := func(v proto.Value) (operation, error) {
		hold := holds[v.Get("on").Str()]
		return operation{
			waits: func(*conn) bool { return true },
			do: func(c *conn) (proto.Result, error) {
				select {
				case <-hold:
				case <-c.gone:
				}
				return proto.Empty{}, nil
			},
		}, nil
	}
	methods["test/hold"] = method{family: "test", decode: hold}
	methods["test/big"] = method{family: "test", decode: func(proto.Value) (operation, error) {
		big := proto.JSON(`"` + strings.Repeat("x", 64<<10) + `"`)
		return operation{do: func(*conn) (proto.Result, error) { return big, nil }}, nil
	}}
	os.Exit(m.Run())
}

func newServer(t *testing.T, opts Options) *Server {
	t.Helper()
	if opts.Cwd == "" {
		opts.Cwd, opts.Home, opts.Shell = "/", "/root", "/bin/bash"
	}
	s := New(opts)
	t.Cleanup(s.Close)
	return s
}
