package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
)

// BenchmarkTrue compares what /bin/true costs, from process/start to
// process/exited, on the servers that EXEC_SERVER_BENCH names ("NAME=URL ...")
// with a bare fork+exec. All take turns inside one loop, so that what else the
// machine does hits them alike. Reported are medians, and ratios to bare. A NAME
// that ends in +read-only or +workspace-write runs the command under that
// profile, with /tmp/bench for a workspace. A URL of the form remote:ID is an
// executor that dials out (see dialTarget). EXEC_SERVER_BENCH_PAUSE is a pause
// before each turn, as a model makes between its commands; none by default.
func BenchmarkTrue(b *testing.B) {
	targets := strings.Fields(os.Getenv("EXEC_SERVER_BENCH"))
	if len(targets) == 0 {
		b.Skip("EXEC_SERVER_BENCH names no servers")
	}
	names := []string{"bare"}
	turns := []func() time.Duration{bareTrue}
	for _, t := range targets {
		name, url, ok := strings.Cut(t, "=")
		if !ok {
			b.Fatalf("EXEC_SERVER_BENCH: %q is not NAME=URL", t)
		}
		names = append(names, name)
		_, profile, _ := strings.Cut(name, "+")
		r := newRemote(b, url)
		r.sandbox = profileOf(b, profile)
		turns = append(turns, r.true)
	}
	times := make([][]time.Duration, len(turns))
	for range 20 {
		for _, turn := range turns {
			turn()
		}
	}
	pause, _ := time.ParseDuration(os.Getenv("EXEC_SERVER_BENCH_PAUSE"))
	for b.Loop() {
		for i, turn := range turns {
			time.Sleep(pause)
			times[i] = append(times[i], turn())
		}
	}
	bare := quantile(times[0], 0.5)
	for i, name := range names {
		p50 := quantile(times[i], 0.5)
		b.ReportMetric(float64(p50.Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(quantile(times[i], 0.99).Microseconds()), name+"-p99-us")
		b.ReportMetric(float64(p50)/float64(bare), name+"-x-bare")
	}
	b.ReportMetric(0, "ns/op")
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

// bareTrue is the floor: fork, exec, wait, with two pipes as a server has them.
func bareTrue() time.Duration {
	start := time.Now()
	var out, err [2]int
	if syscall.Pipe2(out[:], syscall.O_CLOEXEC) != nil || syscall.Pipe2(err[:], syscall.O_CLOEXEC) != nil {
		panic("pipe")
	}
	null, _ := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	pid, e := syscall.ForkExec("/bin/true", []string{"/bin/true"}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []uintptr{uintptr(null), uintptr(out[1]), uintptr(err[1])},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if e != nil {
		panic(e)
	}
	for _, fd := range []int{null, out[1], err[1]} {
		_ = syscall.Close(fd)
	}
	var buf [64]byte
	_, _ = syscall.Read(out[0], buf[:])
	_, _ = syscall.Read(err[0], buf[:])
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	_ = syscall.Close(out[0])
	_ = syscall.Close(err[0])
	return time.Since(start)
}

// remote starts commands on a server.
type remote struct {
	sandbox any
	c       *client.Client
	n       int
	output  int // bytes, until closed
	exited  chan struct{}
	closed  chan struct{}
}

func newRemote(b *testing.B, url string) *remote {
	b.Helper()
	conn, err := dialTarget(b, url)
	if err != nil {
		b.Fatal(err)
	}
	return newRemoteOver(b, conn)
}

func newRemoteOver(b *testing.B, conn proto.Conn) *remote {
	b.Helper()
	ctx := context.Background()
	r := &remote{exited: make(chan struct{}, 1), closed: make(chan struct{}, 1)}
	r.c = client.New(conn, func(method string, params proto.Value) {
		switch method {
		case "process/output":
			r.output += len(params.Get("chunk").Bytes()) / 4 * 3
		case "process/exited":
			r.exited <- struct{}{}
		case "process/closed":
			r.closed <- struct{}{}
		}
	})
	b.Cleanup(func() { _ = r.c.Close() })
	if _, err := r.c.Initialize(ctx, "bench", ""); err != nil {
		b.Fatal(err)
	}
	return r
}

func (r *remote) true() time.Duration {
	r.n++
	start := time.Now()
	_, err := r.c.Call(context.Background(), "process/start", map[string]any{
		"processId": fmt.Sprint("bench-", r.n), "argv": []string{"/bin/true"}, "cwd": "file:///",
		"env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false, "sandbox": r.sandbox,
	})
	if err != nil {
		panic(err)
	}
	<-r.exited
	took := time.Since(start)
	<-r.closed
	return took
}

// profileOf is what the codex client sends in its modes; nil for full access.
func profileOf(b *testing.B, name string) any {
	b.Helper()
	entry := func(access string, value ...any) any {
		special := map[string]any{}
		for i := 0; i < len(value); i += 2 {
			special[value[i].(string)] = value[i+1]
		}
		return map[string]any{"path": map[string]any{"type": "special", "value": special}, "access": access}
	}
	entries := []any{entry("read", "kind", "root")}
	switch name {
	case "":
		return nil
	case "read-only":
	case "workspace-write":
		entries = append(entries, entry("write", "kind", "project_roots"), entry("write", "kind", "slash_tmp"), entry("write", "kind", "tmpdir"))
		for _, sub := range []string{".git", ".agents", ".codex", ".aws"} {
			entries = append(entries, entry("read", "kind", "project_roots", "subpath", sub))
		}
	default:
		b.Fatalf("EXEC_SERVER_BENCH: there is no profile %q", name)
	}
	return map[string]any{
		"permissions":         map[string]any{"type": "managed", "network": "restricted", "file_system": map[string]any{"type": "restricted", "entries": entries}},
		"windowsSandboxLevel": "disabled", "cwd": "file:///tmp/bench", "workspaceRoots": []string{"file:///tmp/bench"},
	}
}

// BenchmarkRoundTrip is what a request costs that does no work, on the same
// servers: the way there and back.
func BenchmarkRoundTrip(b *testing.B) {
	targets := strings.Fields(os.Getenv("EXEC_SERVER_BENCH"))
	if len(targets) == 0 {
		b.Skip("EXEC_SERVER_BENCH names no servers")
	}
	remotes, times := []*remote{}, make([][]time.Duration, len(targets))
	for _, t := range targets {
		_, url, _ := strings.Cut(t, "=")
		remotes = append(remotes, newRemote(b, url))
	}
	for b.Loop() {
		for i, r := range remotes {
			start := time.Now()
			if _, err := r.c.Call(context.Background(), "environment/status", nil); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i, t := range targets {
		name, _, _ := strings.Cut(t, "=")
		b.ReportMetric(float64(quantile(times[i], 0.5).Microseconds()), name+"-p50-us")
	}
	b.ReportMetric(0, "ns/op")
}
