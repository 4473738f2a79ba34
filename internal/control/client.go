package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/exec-server/exec-server/internal/proto"
)

// ErrNoDaemon says that nobody listens on the control socket.
var ErrNoDaemon = errors.New("no exec-server is running for this root")

// DialThrowaway asks the daemon for a throw-away environment and returns a
// connection to it. The environment ends with the connection.
func DialThrowaway(path string, t Throwaway) (proto.Conn, error) {
	c, err := net.Dial("unix", path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoDaemon
	} else if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	conn := proto.NewStreamConn(c, proto.MaxAnswer)
	request, err := json.Marshal(map[string]any{"id": 1, "method": "run", "params": map[string]any{
		"profile": t.Profile, "image": t.Image, "user": t.User, "cwd": t.Cwd, "env": t.Env,
	}})
	if err == nil {
		err = conn.WriteFrames(proto.FrameOf(request))
	}
	if err == nil {
		err = readAnswer(conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func readAnswer(c proto.Conn) error {
	f, err := c.ReadFrame()
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	v, err := proto.Parse(f.Body())
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if e := v.Get("error"); e.Kind == proto.Object {
		return errors.New(e.Get("message").Str())
	}
	return nil
}
