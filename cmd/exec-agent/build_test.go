package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dir holds the agent's binary while the tests run.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "exec-agent"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// buildOnce builds the agent as the build script does.
var buildOnce = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "exec-agent"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
})

func build(t testing.TB) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "exec-agent")
}

// The agent is in every sandbox: what it is made of stays little.
func TestTheAgentImportsLittle(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/exec-server/exec-server/"
	allowed := []string{
		"golang.org/x/sys/unix", "github.com/creack/pty",
		ours + "internal/confine", ours + "internal/proto", ours + "internal/process", ours + "internal/hangup", ours + "internal/fs", ours + "internal/watch", ours + "internal/discover", ours + "internal/snapshot", ours + "internal/agent", ours + "internal/netproxy/policy", ours + "internal/netproxy/steer", ours + "internal/address", ours + "cmd/exec-agent",
	}
	for path := range strings.FieldsSeq(string(out)) {
		if !slices.Contains(allowed, path) {
			t.Errorf("it imports %s", path)
		}
	}
	heavy := exec.Command("go", "list", "-deps", ".")
	heavy.Env = cmd.Env
	if out, err = heavy.Output(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"net", "net/http", "crypto/tls", "encoding/json"} {
		if slices.Contains(strings.Fields(string(out)), path) {
			t.Errorf("it imports %s, which makes it large", path)
		}
	}
}

func TestTheAgentIsSmallAndStatic(t *testing.T) {
	path := build(t)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() >= 4_000_000 {
		t.Errorf("it has %d bytes", st.Size())
	}
	t.Logf("%d bytes", st.Size())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data[:4096], []byte("ld-linux")) {
		t.Error("it needs a dynamic linker")
	}
}

// startUp starts the agent and returns how long it took until its socket was
// there.
func startUp(t testing.TB) time.Duration {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	cmd := exec.Command(build(t), "--socket", socket)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	for {
		if _, err := os.Stat(socket); err == nil {
			return time.Since(begun)
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the socket does not come")
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// The bound is generous: it is there to notice an init function that does work.
func TestTheAgentStartsFast(t *testing.T) {
	var took []time.Duration
	for range 10 {
		took = append(took, startUp(t))
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > 100*time.Millisecond {
		t.Errorf("it takes %v", median)
	}
	t.Logf("fastest %v, median %v", took[0], took[len(took)/2])
}

func BenchmarkStartUp(b *testing.B) {
	build(b)
	var sum time.Duration
	for b.Loop() {
		sum += startUp(b)
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs/socket")
}
