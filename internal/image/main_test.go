package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/exec-server/exec-server/internal/runtime/containerd"
	"github.com/exec-server/exec-server/internal/testroot"
)

// store is the embedded containerd of all tests. Each test has its own
// namespace of it.
var (
	store    *containerd.Server
	storeDir string
)

func TestMain(m *testing.M) {
	if containerd.ShimMain() {
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run()
	}
	var err error
	storeDir, err = os.MkdirTemp("", "image")
	if err == nil {
		defer os.RemoveAll(storeDir)
		store, err = startStore(storeDir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { store.Stop() }()
	return m.Run()
}

func startStore(dir string) (*containerd.Server, error) {
	return containerd.Start(context.Background(), containerd.ServerOptions{
		Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "s"),
	})
}

// eachClient runs a test with the in-memory client and over the socket.
func eachClient(t *testing.T, test func(*testing.T, context.Context, *client.Client)) {
	testroot.Need(t)
	t.Run("memory", func(t *testing.T) { test(t, namespace(t), store.Client()) })
	t.Run("socket", func(t *testing.T) {
		c, err := client.New(store.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		test(t, namespace(t), c)
	})
}

// namespace is the context with a test's own namespace. At the end of the test
// its images are removed, and then nothing else may be left in it.
func namespace(t *testing.T) context.Context {
	ctx := namespaces.WithNamespace(t.Context(), strings.NewReplacer("/", "-", "#", "").Replace(t.Name()))
	t.Cleanup(func() {
		ctx, c := context.WithoutCancel(ctx), store.Client()
		infos, err := List(ctx, c)
		if err != nil {
			t.Error(err)
		}
		for _, info := range infos {
			if err := Remove(ctx, c, info.Name, true); err != nil {
				t.Error(err)
			}
		}
		for _, left := range leftovers(t, ctx, c) {
			t.Errorf("left in the store: %s", left)
		}
	})
	return ctx
}

func leftovers(t *testing.T, ctx context.Context, c *client.Client) (left []string) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	held, err := c.LeasesService().List(ctx)
	check(err)
	for _, l := range held {
		left = append(left, "lease "+l.ID)
	}
	ingests, err := c.ContentStore().ListStatuses(ctx)
	check(err)
	for _, i := range ingests {
		left = append(left, "ingest "+i.Ref)
	}
	check(c.ContentStore().Walk(ctx, func(i content.Info) error {
		left = append(left, "content "+i.Digest.String())
		return nil
	}))
	check(c.SnapshotService(snapshotter).Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		left = append(left, "snapshot "+i.Name)
		return nil
	}))
	return left
}

// recorder is a Progress that keeps what it hears.
type recorder struct {
	steps []string
	bytes map[string]int64
}

func (r *recorder) Step(text string) { r.steps = append(r.steps, text) }

func (r *recorder) Bytes(item string, done, total int64) {
	if r.bytes == nil {
		r.bytes = map[string]int64{}
	}
	if done == total {
		r.bytes[item] = total
	}
}
