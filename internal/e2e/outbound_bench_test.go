package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// benchPeer is where executors of the benchmarks register. It lives as long as the
// process, so that one executor serves all benchmarks.
var benchPeer = sync.OnceValue(func() *remotetest.Peer {
	return remotetest.New(forever{}, remotetest.Options{Addr: os.Getenv("EXEC_SERVER_BENCH_PEER")})
})

// forever is a test that does not end.
type forever struct{ testing.TB }

func (forever) Helper()           {}
func (forever) Cleanup(func())    {}
func (forever) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// dialTarget connects to a server: by its URL, or, with remote:ID, through the
// executor of the environment ID. The benchmark is registry and rendezvous for that,
// on the address that EXEC_SERVER_BENCH_PEER names, and waits for it to come:
//
//	EXEC_SERVER_BENCH_PEER=127.0.0.1:9321 EXEC_SERVER_BENCH="direct=ws://127.0.0.1:7070 relay=remote:a stock=remote:b" \
//	    go test -run '^$' -bench 'True|RoundTrip|Output' ./internal/e2e
//
// with executors that are started when it is there: exec-server --remote
// http://127.0.0.1:9321 --environment-id a, and the stock one as b.
func dialTarget(b *testing.B, url string) (proto.Conn, error) {
	b.Helper()
	id, ok := strings.CutPrefix(url, "remote:")
	if !ok {
		return client.Dial(context.Background(), url, nil)
	}
	if os.Getenv("EXEC_SERVER_BENCH_PEER") == "" {
		b.Fatal("EXEC_SERVER_BENCH_PEER does not say where executors register")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return benchPeer().Open(ctx, id)
}

// BenchmarkOutput is how fast a command's output arrives, on the same servers as
// BenchmarkTrue, which take turns.
func BenchmarkOutput(b *testing.B) {
	targets := strings.Fields(os.Getenv("EXEC_SERVER_BENCH"))
	if len(targets) == 0 {
		b.Skip("EXEC_SERVER_BENCH names no servers")
	}
	const size = 64 << 20
	remotes, times := []*remote{}, make([][]time.Duration, len(targets))
	for _, t := range targets {
		_, url, _ := strings.Cut(t, "=")
		remotes = append(remotes, newRemote(b, url))
	}
	for b.Loop() {
		for i, r := range remotes {
			times[i] = append(times[i], r.print(b, size))
		}
	}
	for i, t := range targets {
		name, _, _ := strings.Cut(t, "=")
		b.ReportMetric(size/1e6/quantile(times[i], 0.5).Seconds(), name+"-MB/s")
	}
	b.ReportMetric(0, "ns/op")
}

// print has a command print size bytes, whole blocks of 64 KiB, and returns how long
// that took. The program is one that costs little in any image: busybox's head takes
// more than all of the server.
func (r *remote) print(b *testing.B, size int) time.Duration {
	r.n++
	r.output = 0
	start := time.Now()
	_, err := r.c.Call(context.Background(), "process/start", map[string]any{
		"processId": fmt.Sprint("bench-", r.n), "argv": []string{"/bin/sh", "-c", fmt.Sprintf("dd if=/dev/zero bs=65536 count=%d 2>/dev/null", size>>16)}, "cwd": "file:///",
		"env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false, "sandbox": r.sandbox,
	})
	if err != nil {
		b.Fatal(err)
	}
	<-r.exited
	<-r.closed
	took := time.Since(start)
	if r.output < size || r.output > size+size/100 { // padding is counted
		b.Fatalf("of %d bytes %d have arrived", size, r.output)
	}
	return took
}
