package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

const patience = 20 * time.Second

// The program as the agent starts it: it serves the sockets that it inherits,
// tells each decision before the command can know, and ends with the agent.
func TestTheProxyMode(t *testing.T) {
	program := filepath.Join(t.TempDir(), "exec-helper")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	origin := listen(t)
	go func() {
		for {
			conn, err := origin.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}
	}()
	web, bridge := listen(t), listen(t)
	cmd := exec.Command(program, "proxy")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs, fileOf(t, web), fileOf(t, bridge)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	agent := proto.NewStreamConn(ours, policy.MaxMessage)
	config := policy.Config{HTTP: true, Bridges: []uint16{port(origin)}}
	if err := agent.WriteFrames(config.Frame()); err != nil {
		t.Fatal(err)
	}

	conn := dial(t, web)
	_, _ = io.WriteString(conn, "GET http://x.example/ HTTP/1.1\r\nHost: x.example\r\n\r\n")
	f, err := agent.ReadFrame()
	if err != nil || !strings.HasPrefix(string(f.Body()), `{"id":1,"method":"decision","params":{"scope":"domain","decision":"deny","source":"baseline_policy","reason":"not_allowed"`) {
		t.Fatalf("%s %v", f, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the command knows before the agent")
	}
	_ = agent.WriteFrames(proto.FrameOf([]byte(`{"id":1,"result":{}}`)))
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusForbidden {
		t.Fatalf("%v %v", res, err)
	}
	_ = res.Body.Close()

	if text, err := io.ReadAll(dial(t, bridge)); err != nil || string(text) != "hello" {
		t.Errorf("over the bridge: %q %v", text, err)
	}
	_ = ours.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it outlives the agent")
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func fileOf(t *testing.T, l *net.TCPListener) *os.File {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func port(l *net.TCPListener) uint16 {
	at, _ := l.Addr().(*net.TCPAddr)
	return uint16(at.Port)
}

func dial(t *testing.T, l *net.TCPListener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port(l)))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
