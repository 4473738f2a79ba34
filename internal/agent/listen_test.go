package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// listenEnv names the socket that the test binary is to listen on as a process
// of its own.
const listenEnv = "AGENT_TEST_LISTEN"

// filesEnv is how many descriptors that process may have.
const filesEnv = "AGENT_TEST_FILES"

// dialAgent connects as soon as there is somebody to connect to.
func dialAgent(t *testing.T, path string) net.Conn {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("unix", path)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// What runs beside the agent, in its PID namespace, is not served.
func TestPeersFromInsideAreNotServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	s := newServer(t, Options{})
	go func() { _ = s.Listen(path) }()
	c := dialAgent(t, path)
	_, _ = c.Write(proto.Hello{Peer: "x"}.Frame())
	_, _ = c.Write(proto.FrameOf([]byte(`{"id":1,"method":"initialize","params":{"clientName":"x"}}`)))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it is answered %d bytes, %v", n, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) != 0 {
		t.Error("it got a session")
	}
}

// outside starts an agent in a PID namespace of its own.
func outside(t *testing.T, env ...string) (path string) {
	t.Helper()
	testroot.Need(t)
	path = filepath.Join(t.TempDir(), "agent")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), env...), listenEnv+"="+path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Skipf("no PID namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return path
}

func TestPeersFromOutsideAreServed(t *testing.T) {
	path := outside(t)
	for range 2 {
		c := dialAgent(t, path)
		conn := proto.NewStreamConn(c, proto.MaxAnswer)
		h := &harness{t: t, conn: conn, answers: make(chan string, 10), notes: make(chan string, 10), ended: make(chan struct{})}
		if err := conn.WriteFrames(proto.Hello{Peer: peerName}.Frame()); err != nil {
			t.Fatal(err)
		}
		go h.read()
		h.initialize("")
		h.start("p", "echo $$", "")
		if out, _ := h.untilClosed("p"); len(out) > 4 {
			t.Errorf("the command has the number %s", out)
		}
		_ = c.Close()
	}

	garbage := dialAgent(t, path)
	_, _ = garbage.Write(proto.FrameOf([]byte(`{"id":1,"method":"initialize"}`))) // no hello
	_ = garbage.SetReadDeadline(time.Now().Add(patience))
	if n, err := garbage.Read(make([]byte, 1)); n != 0 || err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection without a hello is answered %d bytes, %v", n, err)
	}
}

// An agent that has no descriptors left for a connection serves it later. It
// must not end, since its sandbox would end with it.
func TestAnAgentWithoutDescriptorsGoesOn(t *testing.T) {
	path := outside(t, filesEnv+"=24")
	var all []*proto.StreamConn
	for range 40 {
		c := proto.NewStreamConn(dialAgent(t, path), proto.MaxAnswer)
		all = append(all, c)
		if err := c.WriteFrames(append(proto.Hello{Peer: peerName}.Frame(), proto.FrameOf([]byte(`{"id":1,"method":"x"}`))...)); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range all {
		if _, err := c.ReadFrame(); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		_ = c.Close()
	}
}

// testListen is the process that listens.
func testListen(path string) {
	if n, err := strconv.ParseUint(os.Getenv(filesEnv), 10, 64); err == nil {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n})
	}
	fmt.Fprintln(os.Stderr, New(Options{Cwd: "/", Home: "/"}).Listen(path))
	os.Exit(1)
}
