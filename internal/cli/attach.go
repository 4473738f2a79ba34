package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
)

// attached is a command that runs with our streams attached.
type attached struct {
	c      *client.Client
	std    Streams
	tty    bool
	exited chan int
	closed chan struct{}
}

func (r *runCmd) attach(ctx context.Context, conn proto.Conn, std Streams) error {
	a := &attached{std: std, exited: make(chan int, 1), closed: make(chan struct{})}
	a.c = client.New(conn, a.notified)
	defer func() { _ = a.c.Close() }()
	if _, err := a.c.Initialize(ctx, "exec-server run", ""); err != nil {
		return err
	}
	out, isFile := std.Out.(*os.File)
	a.tty = r.TTY == "yes" || r.TTY == "auto" && isFile && term.IsTerminal(int(std.In.Fd())) && term.IsTerminal(int(out.Fd()))
	if err := a.start(ctx, r); err != nil {
		return err
	}
	restore := a.raw()
	defer restore()
	go a.feed(ctx)
	return a.wait(ctx)
}

const processID = "run"

func (a *attached) start(ctx context.Context, r *runCmd) error {
	info, err := a.c.Call(ctx, "environment/info", nil)
	if err != nil {
		return err
	}
	cwd := info.Get("cwd").Str()
	if cwd == "" {
		cwd = "file:///"
	}
	env := map[string]string{}
	if a.tty {
		env["TERM"] = "xterm-256color"
		if t := os.Getenv("TERM"); t != "" {
			env["TERM"] = t
		}
	}
	_, err = a.c.Call(ctx, "process/start", map[string]any{
		"processId": processID, "argv": r.Command, "cwd": cwd, "env": env, "tty": a.tty, "pipeStdin": !a.tty,
		"envPolicy": map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{}, "set": map[string]string{}, "includeOnly": []string{}},
	})
	if e, ok := errors.AsType[*proto.Error](err); ok {
		fmt.Fprintf(a.std.Err, "exec-server: %s: %s\n", r.Command[0], e.Message)
		switch e.Kind { // as shells have it
		case "spawnNotFound":
			return statusError(127)
		case "spawnPermissionDenied", "spawnFailed":
			return statusError(126)
		}
		return statusError(exitFailure)
	}
	return err
}

// notified is called by the client's reader.
func (a *attached) notified(method string, params proto.Value) {
	switch method {
	case "process/output":
		data, err := proto.DecodeBase64(params.Get("chunk").Bytes())
		if err != nil {
			return
		}
		w := a.std.Out
		if params.Get("stream").Str() == "stderr" {
			w = a.std.Err
		}
		_, _ = w.Write(data)
	case "process/exited":
		code, _ := params.Get("exitCode").Int64()
		a.exited <- int(code)
	case "process/closed":
		close(a.closed)
	}
}

// raw hands every key to the command, if it has a terminal.
func (a *attached) raw() (restore func()) {
	fd := int(a.std.In.Fd())
	if !a.tty || !term.IsTerminal(fd) {
		return func() {}
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(fd, old) }
}

// feed sends our standard input to the command.
func (a *attached) feed(ctx context.Context) {
	buf := make([]byte, 64<<10)
	for i := 1; ; i++ {
		n, err := a.std.In.Read(buf)
		if n > 0 {
			_, werr := a.c.Call(ctx, "process/write", map[string]any{"processId": processID, "writeId": fmt.Sprint(i), "chunk": buf[:n]})
			if werr != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				_, _ = a.c.Call(ctx, "process/closeStdin", map[string]any{"processId": processID})
			}
			return
		}
	}
}

// wait passes signals on until the command has ended.
func (a *attached) wait(ctx context.Context) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH)
	defer signal.Stop(signals)
	a.resize(ctx)
	for {
		select {
		case code := <-a.exited:
			select { // what a survivor still prints is not waited for
			case <-a.closed:
			case <-time.After(time.Second):
			}
			if code != 0 {
				return statusError(code)
			}
			return nil
		case <-a.c.Done():
			return errors.New("the environment has ended")
		case s := <-signals:
			switch s {
			case syscall.SIGWINCH:
				a.resize(ctx)
			case syscall.SIGINT:
				_, _ = a.c.Call(ctx, "process/signal", map[string]any{"processId": processID, "signal": "interrupt"})
			default:
				_, _ = a.c.Call(ctx, "process/terminate", map[string]any{"processId": processID})
			}
		}
	}
}

func (a *attached) resize(ctx context.Context) {
	if cols, rows, err := term.GetSize(int(a.std.In.Fd())); a.tty && err == nil && rows > 0 && cols > 0 {
		_, _ = a.c.Call(ctx, "process/resize", map[string]any{"processId": processID, "rows": rows, "cols": cols})
	}
}
