package helper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// SocketFD is the helper's end of the socket to the agent.
const SocketFD = 3

// Serve serves the agent's requests until the socket ends. Each is handled on a
// goroutine of its own; how many there are is up to the agent.
func Serve(handle func(*Call)) error {
	socket, err := Open()
	if err != nil {
		return err
	}
	return serve(socket, handle)
}

// Open makes the process one that its own user cannot look into, and returns its
// end of the socket to the agent.
func Open() (*os.File, error) {
	// A process that an image's user can look into tells them the environment.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become undumpable: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(SocketFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errors.New("this program is for exec-server to start: descriptor 3 is no socket")
	}
	unix.CloseOnExec(SocketFD)
	return os.NewFile(SocketFD, "agent"), nil
}

func serve(socket io.ReadWriteCloser, handle func(*Call)) error {
	in := proto.NewStreamConn(socket, proto.MaxRequest)
	out := &sender{conn: in}
	for {
		f, err := in.ReadFrame()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read from the agent: %w", err)
		}
		m, err := proto.ParseMessage(slices.Clone(f.Body()))
		if err != nil || m.Kind != proto.Request {
			return fmt.Errorf("the agent sends no request: %w", err)
		}
		go handle(&Call{Method: m.Method, Params: m.Params, id: m.ID, out: out})
	}
}

// Call is a request of the agent.
type Call struct {
	Method string
	Params proto.Value

	id  proto.Value
	out *sender
}

// Answer answers the request.
func (c *Call) Answer(r proto.Result, err error) {
	if err != nil {
		c.out.send(proto.ErrorFrame(c.id, proto.WireError(err)))
		return
	}
	c.out.send(proto.ResultFrame(c.id, r))
}

// Notify sends a notification. It waits while the agent does not read.
func (c *Call) Notify(f proto.Frame) { c.out.send(f) }

type sender struct {
	mu   sync.Mutex // held over a write: nobody else is to write meanwhile
	conn *proto.StreamConn
}

// send sends a frame. If it cannot, the agent is gone, and Serve ends.
func (s *sender) send(f proto.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.WriteFrames(f)
}
