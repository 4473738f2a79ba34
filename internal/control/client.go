package control

import (
	"context"
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

// Alive tells whether a daemon listens on that control socket.
func Alive(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// DialThrowaway asks the daemon for a throw-away environment and returns a
// connection to it. The environment ends with the connection.
func DialThrowaway(path string, t Throwaway) (proto.Conn, error) {
	conn, err := dial(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if _, err := ask(conn, "run", map[string]any{
		"profile": t.Profile, "image": t.Image, "user": t.User, "cwd": t.Cwd, "env": t.Env, "network": t.Network,
	}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func dial(ctx context.Context, path string) (*proto.StreamConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoDaemon
	} else if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("control socket: %w; run it as root, or as the user of the exec-server", err)
	} else if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return proto.NewStreamConn(c, proto.MaxAnswer), nil
}

// ask sends a request and returns its result.
func ask(c proto.Conn, method string, params any) (json.RawMessage, error) {
	request, err := json.Marshal(map[string]any{"id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if err := c.WriteFrames(proto.FrameOf(request)); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	f, err := c.ReadFrame()
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	var answer struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(f.Body(), &answer); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if answer.Error != nil {
		return nil, errors.New(answer.Error.Message)
	}
	return answer.Result, nil
}
