package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// BenchmarkOutbound compares the way through the relay with the direct listener of
// the same daemon and container, and, if EXEC_SERVER_BENCH_STOCK names a codex, with
// the relay of its executor. All take turns inside one loop, so that what else the
// machine does hits them alike. As root:
//
//	EXEC_SERVER_BENCH_STOCK=$PWD/.cache/codex-0.171.0/node_modules/.bin/codex go test -run '^$' -bench Outbound ./internal/e2e
//
// True is from process/start to process/exited, in medians; added-us is what the
// relay adds to it. Output is how fast a command's 64 MiB arrive.
func BenchmarkOutbound(b *testing.B) {
	peer := remotetest.New(b, remotetest.Options{})
	b.Setenv("E2E_KEY", "sk-e2e")
	s := newRoot(b, fmt.Sprintf("[environment.a]\nremote = %q\nkey_env = \"E2E_KEY\"\n", peer.URL)).serve()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	direct, err := client.Dial(ctx, s.url+"/environments/a", nil)
	if err != nil {
		b.Fatal(err)
	}
	names, ends := []string{"direct"}, []*remote{newRemoteOver(b, direct)}
	through := func(name, id string) {
		conn, err := peer.Open(ctx, id)
		if err != nil {
			b.Fatal(err)
		}
		names, ends = append(names, name), append(ends, newRemoteOver(b, conn))
	}
	through("relay", "a")
	if codex := os.Getenv("EXEC_SERVER_BENCH_STOCK"); codex != "" {
		startStock(b, codex, peer.URL)
		through("stock", "stock")
	}
	b.Run("True", func(b *testing.B) {
		times := takeTurns(b, 50, ends, (*remote).true)
		for i, name := range names {
			b.ReportMetric(float64(quantile(times[i], 0.5).Microseconds()), name+"-p50-us")
			b.ReportMetric(float64(quantile(times[i], 0.99).Microseconds()), name+"-p99-us")
		}
		b.ReportMetric(float64((quantile(times[1], 0.5) - quantile(times[0], 0.5)).Microseconds()), "added-us")
	})
	b.Run("Output", func(b *testing.B) {
		const size = 64 << 20
		times := takeTurns(b, 1, ends, func(r *remote) time.Duration { return r.print(b, size) })
		for i, name := range names {
			b.ReportMetric(size/1e6/quantile(times[i], 0.5).Seconds(), name+"-MB/s")
		}
	})
}

// takeTurns has all do something, first a few times that are not counted.
func takeTurns(b *testing.B, warm int, ends []*remote, f func(*remote) time.Duration) [][]time.Duration {
	for range warm {
		for _, r := range ends {
			f(r)
		}
	}
	times := make([][]time.Duration, len(ends))
	for b.Loop() {
		for i, r := range ends {
			times[i] = append(times[i], f(r))
		}
	}
	b.ReportMetric(0, "ns/op")
	return times
}

// startStock starts the executor of a codex, which registers as "stock".
func startStock(b *testing.B, codex, registry string) {
	b.Helper()
	home := b.TempDir()
	cmd := exec.Command(codex, "exec-server", "--remote", registry, "--environment-id", "stock")
	cmd.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+home, "CODEX_API_KEY=sk-e2e")
	cmd.Dir = home
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait()
	})
}
