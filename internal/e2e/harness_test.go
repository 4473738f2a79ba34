package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/leakcheck"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// cli runs the program to its end.
func cli(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	timer := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// root is a scratch root with the busybox image and a configuration that uses
// it; what a test leaves of it on the machine fails the test.
type root struct {
	t      testing.TB
	dir    string
	config string
}

func newRoot(t testing.TB, config string) *root {
	t.Helper()
	testroot.Need(t)
	dir, err := os.MkdirTemp("", "exec-server-root")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	r := &root{t: t, dir: dir, config: filepath.Join(dir, "config.toml")}
	scope := leakcheck.Scope{Paths: []string{dir, r.state()}, Cgroup: r.cgroup(), Processes: []string{dir, r.state()}}
	before := snapshot(t, scope)
	t.Cleanup(func() {
		if !t.Failed() {
			r.checkLeaks(scope, before)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	text := "version = 1\nroot = \"" + filepath.Join(dir, "root") + "\"\n" + config
	if !strings.Contains(config, "[profile.default]") {
		text += "\n[profile.default]\nimage = \"test/busybox:1\"\n"
	}
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.importImage(busyboxTar, "test/busybox:1")
	return r
}

// instance is what tells the server of this root from others on the machine.
func (r *root) instance() string {
	sum := sha256.Sum256([]byte(filepath.Join(r.dir, "root")))
	return fmt.Sprintf("%x", sum[:6])
}

func (r *root) state() string  { return "/run/exec-server/" + r.instance() }
func (r *root) cgroup() string { return "exec-server-" + r.instance() }

func snapshot(t testing.TB, scope leakcheck.Scope) leakcheck.State {
	t.Helper()
	s, err := scope.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	delete(s.Kinds, "file") // the root is kept, and removed by the test
	return s
}

// checkLeaks compares with the state before; processes take a moment to go.
func (r *root) checkLeaks(scope leakcheck.Scope, before leakcheck.State) {
	var diff string
	for range 50 {
		if diff = leakcheck.Diff(before, snapshot(r.t, scope)); diff == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("left on the machine:\n%s", diff)
}

func (r *root) importImage(tar, name string, flags ...string) {
	r.t.Helper()
	args := append([]string{"--config", r.config, "image", "import", tar, "--name", name}, flags...)
	if _, stderr, code := cli(r.t, "", args...); code != 0 {
		r.t.Fatalf("image import: exit %d: %s", code, stderr)
	}
}

// server is a daemon that runs.
type server struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string
	logs *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serve starts the program as a daemon and waits for its URL.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	return launch(t, (*exec.Cmd).Start, args...)
}

// launch is serve with another way to start a program.
func launch(t testing.TB, start func(*exec.Cmd) error, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: exec.Command(bin, args...), logs: &lockedBuffer{}}
	s.cmd.Stderr = s.logs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(s.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.logs)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ws://127.0.0.1:") {
		t.Fatalf("ready line %q, %v; log:\n%s", line, err, s.logs)
	}
	s.url = strings.TrimSpace(line)
	return s
}

func (r *root) serve(args ...string) *server {
	r.t.Helper()
	return serve(r.t, append([]string{"--config", r.config}, args...)...)
}

// stop signals the server and returns its exit status.
func (s *server) stop(sig syscall.Signal) int {
	s.t.Helper()
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(sig)
		timer := time.AfterFunc(60*time.Second, func() { _ = s.cmd.Process.Kill() })
		_ = s.cmd.Wait()
		if !timer.Stop() {
			s.t.Error("the server did not stop within a minute")
		}
	}
	return s.cmd.ProcessState.ExitCode()
}

// harness is a client with a session.
type harness struct {
	t       testing.TB
	c       *client.Client
	session string

	mu    sync.Mutex // guards procs
	procs map[string]*proc
}

// event is a notification of a process. stream is "exited" or "closed" for
// those.
type event struct {
	seq    uint64
	stream string
	data   []byte
}

// serial tells all processes of a test run apart.
var serial atomic.Int64

type proc struct {
	each    func(event) // if not nil, gets what happens instead of out
	out     bytes.Buffer
	seq     uint64
	code    int
	printed bool
	prints  chan struct{} // closed at its first output
	exited  chan struct{}
	closed  chan struct{}
}

func (s *server) connect(path, resume string) *harness {
	s.t.Helper()
	h, err := s.tryConnect(path, resume)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *server) tryConnect(path, resume string) (*harness, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := client.Dial(ctx, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	return join(ctx, s.t, conn, resume)
}

// join begins or resumes a session over a connection.
func join(ctx context.Context, t testing.TB, conn proto.Conn, resume string) (h *harness, err error) {
	h = &harness{t: t, procs: map[string]*proc{}}
	h.c = client.New(conn, h.notified)
	t.Cleanup(func() { _ = h.c.Close() })
	h.session, err = h.c.Initialize(ctx, "e2e", resume)
	return h, err
}

func (h *harness) proc(id string) *proc {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.procs[id]
	if p == nil {
		p = &proc{prints: make(chan struct{}), exited: make(chan struct{}), closed: make(chan struct{})}
		h.procs[id] = p
	}
	return p
}

func (h *harness) notified(method string, params proto.Value) {
	if method == "network/policyDecision" {
		return // is not tied to the others
	}
	p := h.proc(params.Get("processId").Str())
	h.mu.Lock()
	each := p.each
	h.mu.Unlock()
	seq, _ := params.Get("seq").Uint64()
	if p.seq != 0 && seq != p.seq+1 {
		h.t.Errorf("seq %d follows %d", seq, p.seq)
	}
	p.seq = seq
	switch method {
	case "process/output":
		data, err := proto.DecodeBase64(params.Get("chunk").Bytes())
		if err != nil {
			h.t.Error(err)
		}
		if !p.printed {
			p.printed = true
			defer close(p.prints)
		}
		if each != nil {
			each(event{seq, params.Get("stream").Str(), data})
		} else {
			p.out.Write(data)
		}
	case "process/exited":
		if each != nil {
			each(event{seq, "exited", nil})
		}
		code, _ := params.Get("exitCode").Int64()
		p.code = int(code)
		close(p.exited)
	case "process/closed":
		if each != nil {
			each(event{seq, "closed", nil})
		}
		close(p.closed)
	}
}

// watch has what happens to a process told to f, on the reading goroutine.
func (h *harness) watch(id string, f func(event)) *proc {
	p := h.proc(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	p.each = f
	return p
}

func (h *harness) call(method string, params any) (proto.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return h.c.Call(ctx, method, params)
}

// start starts argv with the environment that the server gives.
func (h *harness) start(argv ...string) (string, *proc) {
	h.t.Helper()
	id := fmt.Sprint("p", serial.Add(1))
	_, err := h.call("process/start", map[string]any{
		"processId": id, "argv": argv, "cwd": "file:///", "env": map[string]string{}, "tty": false, "pipeStdin": true,
		"envPolicy": map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{}, "set": map[string]string{}, "includeOnly": []string{}},
	})
	if err != nil {
		h.t.Fatalf("start %q: %v", argv, err)
	}
	return id, h.proc(id)
}

// sh runs a script and returns what it printed.
func (h *harness) sh(script string) string { return h.run("/bin/sh", "-c", script) }

func (h *harness) run(argv ...string) string {
	h.t.Helper()
	_, p := h.start(argv...)
	wait(h.t, p.closed, fmt.Sprintf("%q", argv))
	return strings.TrimRight(p.out.String(), "\n")
}

func wait(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: not within a minute", what)
	}
}
