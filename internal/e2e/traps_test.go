package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// The tests named TestTrap are about what users of such systems complain of in
// public: each holds that it does not happen here. They run on servers that all
// of them share, one of each runtime.

// scale is how often to repeat: full with EXEC_SERVER_TRAPS=full, which takes
// many minutes.
func scale(t testing.TB, few, full int) int {
	if os.Getenv("EXEC_SERVER_TRAPS") == "full" {
		return full
	}
	t.Logf("%d in place of %d, which EXEC_SERVER_TRAPS=full asks for", few, full)
	return few
}

// place is a server that a trap is set on.
type place struct {
	*server
	root *root // nil with --runtime host
	// dir is a directory of the test's own, as commands name it.
	dir string
}

// everywhere runs a test on a server of each runtime.
func everywhere(t *testing.T, f func(t *testing.T, p *place)) { everywhereIn(t, "", f) }

// briefly is everywhere on servers whose sessions end a second after their
// connections.
func briefly(t *testing.T, f func(t *testing.T, p *place)) {
	everywhereIn(t, "[session]\ndetach = \"1s\"\n", f)
}

func everywhereIn(t *testing.T, config string, f func(t *testing.T, p *place)) {
	t.Run("host", func(t *testing.T) {
		s := *shared.host(t, config)
		s.t = t
		f(t, &place{server: &s, dir: t.TempDir()})
	})
	t.Run("container", func(t *testing.T) {
		f(t, inContainer(t, config))
	})
}

// inContainer is a place in a container.
func inContainer(t *testing.T, config string) *place {
	t.Helper()
	testroot.Need(t)
	r, s := shared.container(t, config)
	view := *s
	view.t = t
	p := &place{server: &view, root: r, dir: "/workspace/" + fmt.Sprint("t", serial.Add(1))}
	p.connect("/", "").sh("mkdir " + p.dir)
	return p
}

// uri is that of a file in the place's directory; the name may need encoding.
func (p *place) uri(name string) string { return proto.FileURI(p.dir + "/" + name).String() }

// pid is the process that starts commands: the server's, or the agent's as the
// host sees it.
func (p *place) pid() int {
	p.t.Helper()
	if p.root == nil {
		return p.cmd.Process.Pid
	}
	for _, pid := range strings.Fields(readCgroup(p.t, p.root, "cgroup.procs", "cgroup.procs")) {
		status, _ := os.ReadFile("/proc/" + pid + "/status")
		_, line, _ := strings.Cut(string(status), "NSpid:")
		line, _, _ = strings.Cut(line, "\n")
		if ids := strings.Fields(line); len(ids) > 1 && ids[len(ids)-1] == "1" {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	p.t.Fatal("the agent was not found")
	return 0
}

// files counts the descriptors of the process that starts commands.
func (p *place) files() int {
	p.t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(fds)
}

// marker makes a number that tells sleeps of a test from all others.
func marker() string { return fmt.Sprintf("98%05d%03d", os.Getpid(), serial.Add(1)%1000) }

// withMarker finds the processes of the machine, containers' included, that have
// the marker among their arguments. Zombies have none.
func withMarker(t testing.TB, marker string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		data, _ := os.ReadFile(file)
		for arg := range strings.SplitSeq(string(data), "\x00") {
			if arg == marker {
				pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// eventually waits until something has become so; a minute is longer than any
// machine needs.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// spawn starts a command with PATH for its environment and no standard input;
// more overrides the params.
func (h *harness) spawn(more map[string]any, argv ...string) (id string, p *proc, err error) {
	h.t.Helper()
	id = fmt.Sprint("p", serial.Add(1))
	return id, h.proc(id), h.spawnAs(id, more, argv...)
}

func (h *harness) spawnAs(id string, more map[string]any, argv ...string) error {
	params := map[string]any{
		"processId": id, "argv": argv, "cwd": "file:///", "tty": false,
		"env": map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"},
	}
	for name, value := range more {
		params[name] = value
	}
	_, err := h.call("process/start", params)
	return err
}

var (
	onTerminal = map[string]any{"tty": true}
	withStdin  = map[string]any{"pipeStdin": true}
)

// script is spawn of a shell that must start.
func (h *harness) script(more map[string]any, text string) (string, *proc) {
	h.t.Helper()
	id, p, err := h.spawn(more, "/bin/sh", "-c", text)
	if err != nil {
		h.t.Fatalf("start %q: %v", text, err)
	}
	return id, p
}

// finish is script, and waits for its end.
func (h *harness) finish(more map[string]any, text string) (out string, code int) {
	h.t.Helper()
	_, p := h.script(more, text)
	wait(h.t, p.closed, text)
	return p.out.String(), p.code
}

func (h *harness) must(method string, params any) proto.Value {
	h.t.Helper()
	v, err := h.call(method, params)
	if err != nil {
		h.t.Fatalf("%s: %v", method, err)
	}
	return v
}

func (h *harness) terminate(id string) (running bool) {
	h.t.Helper()
	return h.must("process/terminate", map[string]any{"processId": id}).Get("running").Kind == proto.True
}

// write feeds standard input and returns the status.
func (h *harness) write(id, writeID, data string) string {
	h.t.Helper()
	return h.must("process/write", map[string]any{"processId": id, "writeId": writeID, "chunk": base64Of(data)}).Get("status").Str()
}

// base64Of is data as the wire carries it.
func base64Of(data string) string {
	text := proto.AppendBase64(nil, []byte(data))
	return string(text[1 : len(text)-1])
}

// chunksOf joins the output in an answer of process/read.
func chunksOf(t testing.TB, read proto.Value) string {
	t.Helper()
	out := ""
	for i := range read.Get("chunks").Len() {
		data, err := proto.DecodeBase64(read.Get("chunks").At(i).Get("chunk").Bytes())
		if err != nil {
			t.Error(err)
		}
		out += string(data)
	}
	return out
}

// refused says how a request was refused: "CODE MESSAGE", and the kind.
func refused(err error) string {
	e, ok := errors.AsType[*proto.Error](err)
	switch {
	case err == nil:
		return "not at all"
	case !ok:
		return err.Error()
	case e.Kind != "":
		return fmt.Sprintf("%d %s [%s]", e.Code, e.Message, e.Kind)
	}
	return fmt.Sprintf("%d %s", e.Code, e.Message)
}

// fragile is a way to a server that can be cut.
type fragile struct {
	listener net.Listener
	mu       sync.Mutex // guards conns
	conns    []*net.TCPConn
}

// throughFragile is the server behind a way that can be cut.
func throughFragile(t testing.TB, s *server) (*server, *fragile) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fragile{listener: l}
	t.Cleanup(func() { _ = l.Close(); f.cut() })
	go func() {
		for {
			ours, err := l.Accept()
			if err != nil {
				return
			}
			theirs, err := net.Dial("tcp", strings.TrimPrefix(s.url, "ws://"))
			if err != nil {
				_ = ours.Close()
				continue
			}
			f.join(ours.(*net.TCPConn), theirs.(*net.TCPConn))
		}
	}()
	view := *s
	view.url = "ws://" + l.Addr().String()
	return &view, f
}

func (f *fragile) join(a, b *net.TCPConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, a, b)
	pump := func(to, from *net.TCPConn) {
		_, _ = to.ReadFrom(from)
		_ = to.Close()
	}
	go pump(a, b)
	go pump(b, a)
}

// cut resets all connections in both directions.
func (f *fragile) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	f.conns = nil
}

// resume takes up a session whose connection was lost, as soon as the server
// has noticed that.
func (s *server) resume(session string) *harness {
	s.t.Helper()
	var h *harness
	eventually(s.t, "the resume", func() bool {
		var err error
		h, err = s.tryConnect("/", session)
		if err != nil && !strings.HasPrefix(refused(err), "-32010 ") {
			s.t.Fatal(err)
		}
		return err == nil
	})
	return h
}

// shared are the servers that traps share, by their configuration.
var shared sharedServers

type sharedServers struct {
	hosts      map[string]*server
	containers map[string]*server
	roots      map[string]*root
	ends       []func()
	failed     bool

	toolsRoot, toolsImage string
}

func (s *sharedServers) host(t *testing.T, config string) *server {
	t.Helper()
	if s.hosts[config] == nil {
		file := filepath.Join(filepath.Dir(bin), fmt.Sprint("host", len(s.hosts), ".toml"))
		if err := os.WriteFile(file, []byte("version = 1\nruntime = \"host\"\n"+config), 0o600); err != nil {
			t.Fatal(err)
		}
		if s.hosts == nil {
			s.hosts = map[string]*server{}
		}
		s.hosts[config] = serve(&lasting{TB: t, all: s}, "--config", file)
	}
	return s.hosts[config]
}

// small is the profile of the shared containers.
const small = "\n[profile.default]\nimage = \"test/busybox:1\"\nshm_size = \"4MiB\"\n"

func (s *sharedServers) container(t *testing.T, config string) (*root, *server) {
	t.Helper()
	if s.containers[config] == nil {
		if s.containers == nil {
			s.containers, s.roots = map[string]*server{}, map[string]*root{}
		}
		s.roots[config] = newRoot(&lasting{TB: t, all: s}, config+small)
		s.containers[config] = s.roots[config].serve()
	}
	return s.roots[config], s.containers[config]
}

// end stops the servers and says whether they have left nothing.
func (s *sharedServers) end() bool {
	for i := range s.ends {
		s.ends[len(s.ends)-1-i]()
	}
	return !s.failed
}

// lasting is the test that made a shared server. What it leaves for the end is
// done when all tests have run, and complaints of then are printed.
type lasting struct {
	testing.TB
	all *sharedServers
}

func (l *lasting) Helper()                   {}
func (l *lasting) Cleanup(f func())          { l.all.ends = append(l.all.ends, f) }
func (l *lasting) Failed() bool              { return l.all.failed }
func (l *lasting) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (l *lasting) Log(a ...any)              { fmt.Fprintln(os.Stderr, a...) }
func (l *lasting) Error(a ...any)            { l.all.failed = true; l.Log(a...) }
func (l *lasting) Errorf(f string, a ...any) { l.all.failed = true; l.Logf(f, a...) }
func (l *lasting) Fatal(a ...any)            { l.Error(a...); l.TB.FailNow() }
func (l *lasting) Fatalf(f string, a ...any) { l.Errorf(f, a...); l.TB.FailNow() }

// kill is the machine's own.
func kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
