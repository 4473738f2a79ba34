package containerd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/leakcheck"
	"github.com/exec-server/exec-server/internal/runtime"
)

// daemonEnv makes the test's binary a daemon that is going to be killed.
const daemonEnv = "EXEC_SERVER_TEST_DAEMON"

// daemonMain is that daemon. It adopts what is there, makes sure that there is
// the sandbox "first", and then makes and removes another until it is killed.
func daemonMain() bool {
	root, state, ok := strings.Cut(os.Getenv(daemonEnv), ":")
	if !ok {
		return false
	}
	agent, err := os.ReadFile(os.Getenv("EXEC_SERVER_TEST_AGENT"))
	if err == nil {
		err = daemonRun(place{root, state}, agent)
	}
	fmt.Println("error:", err)
	return true
}

func daemonRun(p place, agent []byte) error {
	d, err := p.open(zerolog.New(os.Stderr).Level(zerolog.WarnLevel), agent)
	if err != nil {
		return err
	}
	adopted, err := d.Adopt(d.ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for _, s := range adopted {
		names = append(names, s.Spec().Name)
	}
	if len(adopted) == 0 {
		if _, err := d.Create(d.ctx, runtime.Spec{Name: "first", Image: "test/static:1"}); err != nil {
			return err
		}
	}
	fmt.Println("adopted", strings.Join(names, " "))
	fmt.Scanln()
	fmt.Println("creating")
	for {
		s, err := d.Create(d.ctx, runtime.Spec{Name: "second", Image: "test/static:1", Ephemeral: true, OneClient: true, MemoryBytes: 100 << 20})
		if err == nil {
			err = s.Remove(d.ctx)
		}
		if err != nil {
			return err
		}
	}
}

// mortalDaemon is a daemon in another process.
type mortalDaemon struct {
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Scanner
}

func (p place) startMortal(t *testing.T, agent string) *mortalDaemon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := &mortalDaemon{cmd: exec.Command(self)}
	m.cmd.Env = append(os.Environ(), daemonEnv+"="+p.root+":"+p.state, "EXEC_SERVER_TEST_AGENT="+agent)
	m.cmd.Stderr = os.Stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.in, m.out = in.(*os.File), bufio.NewScanner(out)
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.kill)
	return m
}

func (m *mortalDaemon) says(t *testing.T) string {
	t.Helper()
	if !m.out.Scan() {
		t.Fatalf("the daemon ended: %v", m.out.Err())
	}
	return m.out.Text()
}

func (m *mortalDaemon) kill() {
	_ = m.cmd.Process.Signal(unix.SIGKILL)
	_ = m.cmd.Wait()
}

func TestDaemonKilled(t *testing.T) {
	p := newPlace(t)
	d, err := p.open(zerolog.Nop(), testAgent)
	if err != nil {
		t.Fatal(err)
	}
	staticImage(t, d.ctx, d.server.Client())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, testAgent, 0o755); err != nil {
		t.Fatal(err)
	}
	m := p.startMortal(t, agent)
	if got := m.says(t); got != "adopted " {
		t.Fatalf("the first daemon says %q", got)
	}
	quiet := p.look(t)
	for delay := time.Duration(0); delay < 300*time.Millisecond; delay += 13 * time.Millisecond {
		fmt.Fprintln(m.in)
		if got := m.says(t); got != "creating" {
			t.Fatalf("it says %q", got)
		}
		time.Sleep(delay)
		m.kill()
		restart := time.Now()
		m = p.startMortal(t, agent)
		if got := m.says(t); got != "adopted first" {
			t.Fatalf("after a kill %s into a create, the next daemon says %q", delay, got)
		}
		same := func() string { return p.likeBefore(t, quiet, p.look(t)) }
		t.Logf("killed after %s, ready again in %d ms", delay, time.Since(restart).Milliseconds())
		if diff := eventually(same); diff != "" {
			t.Fatalf("after a kill %s into a create, this is left:\n%s", delay, diff)
		}
	}
	m.kill()

	d = p.startDaemon(t)
	adopted, err := d.Adopt(d.ctx)
	if err != nil || len(adopted) != 1 || adopted[0].Spec().Name != "first" {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	if got := askOf(t, adopted[0], "still there"); got != "still there" {
		t.Error(got)
	}
	if got, want := d.activeSnapshots(t), adopted[0].(*sandbox).task.ID(); !slices.Equal(got, []string{want}) {
		t.Errorf("the snapshots %q are there, and not only %s", got, want)
	}
	if left, err := d.client.LeasesService().List(d.ctx); len(left) > 0 || err != nil {
		t.Errorf("%d leases are left, %v", len(left), err)
	}
	if left, err := os.ReadDir(filepath.Join(p.root, "environments")); len(left) != 1 {
		t.Errorf("%d environments are left, %v", len(left), err)
	}
	d.remove(t, adopted[0])
}

// likeBefore compares two states but for the daemon's own process, sockets and
// files whose names are made up.
func (p place) likeBefore(t *testing.T, before, after leakcheck.State) string {
	t.Helper()
	for _, s := range []leakcheck.State{before, after} {
		for i, text := range s.Kinds["process"] {
			if _, text, ok := strings.Cut(text, ": "); ok {
				s.Kinds["process"][i] = text
			}
		}
	}
	return leakcheck.Diff(before, after)
}

// eventually asks until the answer is "" or two seconds are over.
func eventually(ask func() string) (answer string) {
	for range 100 {
		if answer = ask(); answer == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return answer
}

// TestReboot has a state directory that is gone, and no process left.
func TestReboot(t *testing.T) {
	p := newPlace(t)
	d, err := p.open(zerolog.Nop(), testAgent)
	if err != nil {
		t.Fatal(err)
	}
	image := staticImage(t, d.ctx, d.server.Client())
	s, err := d.Create(d.ctx, runtime.Spec{Name: "before", Image: image})
	if err != nil {
		t.Fatal(err)
	}
	askOf(t, s, "!write /workspace/file text")
	if _, err := d.Create(d.ctx, runtime.Spec{Name: "passing", Image: image, Ephemeral: true, OneClient: true}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	helpers, err := d.server.helpers()
	if err != nil || len(helpers) != 2 {
		t.Fatalf("found the helpers %v, %v", helpers, err)
	}
	for _, h := range helpers {
		if err := d.server.endHelpers(h.id); err != nil {
			t.Fatal(err)
		}
		if err := d.cgroup.remove(h.id); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unmountBelow(p.state), removeTree(p.state)); err != nil {
		t.Fatal(err)
	}

	d = p.startDaemon(t)
	if adopted, err := d.Adopt(d.ctx); len(adopted) > 0 || err != nil {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	if left, err := d.client.Containers(d.ctx); len(left) > 0 || err != nil {
		t.Errorf("%d containers are left, %v", len(left), err)
	}
	if got := d.activeSnapshots(t); len(got) > 0 {
		t.Errorf("the snapshots %q are left", got)
	}
	if left, err := os.ReadDir(filepath.Join(p.root, "environments")); len(left) != 1 || err != nil {
		t.Errorf("%d environments are left, %v", len(left), err)
	}
	if got := askOf(t, d.create(t, runtime.Spec{Name: "before", Image: image}), "!read /workspace/file"); got != "text" {
		t.Errorf("the workspace has %q", got)
	}
}

func TestRestart(t *testing.T) {
	p := newPlace(t)
	d, err := p.open(zerolog.Nop(), testAgent)
	if err != nil {
		t.Fatal(err)
	}
	image := staticImage(t, d.ctx, d.server.Client())
	spec := runtime.Spec{Name: "survivor", Profile: "p", Image: image, CPUs: 1, Env: []string{"A=b"}, AgentArgs: []string{"--mute=false"}}
	if _, err := d.Create(d.ctx, spec); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(context.Background(), spec); err == nil {
		t.Error("a closed runtime made a sandbox")
	}

	d = p.startDaemon(t)
	adopted, err := d.Adopt(d.ctx)
	if err != nil || len(adopted) != 1 {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	if got := fmt.Sprint(adopted[0].Spec()); got != fmt.Sprint(spec) {
		t.Errorf("its spec is %s, not %s", got, fmt.Sprint(spec))
	}
	if got := askOf(t, adopted[0], "hello"); got != "hello" {
		t.Error(got)
	}
	if err := unix.Kill(adopted[0].(*sandbox).pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-adopted[0].Done():
	case <-time.After(2 * time.Second):
		t.Error("the end of an adopted sandbox was not noticed")
	}
	d.remove(t, adopted[0])
}
