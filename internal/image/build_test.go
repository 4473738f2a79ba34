package image

import (
	"bytes"
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

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"

	"github.com/exec-server/exec-server/internal/testroot"
)

// fakeBuilder puts a shell script in place of mmdebstrap. In it, $ROOTFS is a
// tar of a root file system and $STATE a directory of the test's.
func fakeBuilder(t *testing.T, script string) (state string) {
	t.Helper()
	bin, state := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	script = fmt.Sprintf("#!/bin/sh\nSTATE=%s\nROOTFS=%s/rootfs.tar\n%s\n", state, state, script)
	if err := os.WriteFile(filepath.Join(state, "rootfs.tar"), rootfs(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "mmdebstrap"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); left != nil {
			t.Errorf("left: %v", left)
		}
	})
	return state
}

func TestEnsure(t *testing.T) {
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		state := fakeBuilder(t, `echo run >>$STATE/runs; printf '%s\n' "$@" >$STATE/args; env >$STATE/env
			echo "I: running apt-get update..." >&2; mkdir $TMPDIR/chroot; mount -t tmpfs none $TMPDIR/chroot; cat $ROOTFS`)
		r, p := Default(), &recorder{}
		for range 2 {
			img, err := Ensure(ctx, c, r, p)
			if err != nil || img.Name() != r.Name() {
				t.Fatal(err)
			}
			spec, err := check(t, ctx, c, r.Name()).Spec(ctx)
			if err != nil || spec.Config.User != "agent" || spec.Config.WorkingDir != "/workspace" ||
				!slices.Equal(spec.Config.Cmd, []string{"bash"}) || !slices.Contains(spec.Config.Env, "LANG=C.UTF-8") || spec.Created.Unix() != r.Epoch {
				t.Errorf("%+v, %v", spec, err)
			}
		}
		runs, _ := os.ReadFile(filepath.Join(state, "runs"))
		if string(runs) != "run\n" {
			t.Errorf("built more than once: %s", runs)
		}
		args, _ := os.ReadFile(filepath.Join(state, "args"))
		if !bytes.Contains(args, []byte("\nbookworm\n-\n")) || !bytes.Contains(args, []byte("useradd --uid 1000 --gid 1000 --home-dir /home/agent")) {
			t.Errorf("arguments: %s", args)
		}
		env, _ := os.ReadFile(filepath.Join(state, "env"))
		if !bytes.Contains(env, fmt.Appendf(nil, "SOURCE_DATE_EPOCH=%d\n", r.Epoch)) {
			t.Errorf("environment: %s", env)
		}
		if !slices.Contains(p.steps, "reading the package lists") || p.bytes["layer"] != int64(len(rootfs(t))) {
			t.Errorf("progress: %+v", p)
		}
		if _, err := Build(ctx, c, r, nil); err != nil { // over the one that is there
			t.Error(err)
		}
	})
}

func TestBuildFails(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{`echo "E: Failed to fetch http://m.test/ 404" >&2; echo "E: apt-get failed" >&2; exit 25`,
			": mmdebstrap: Failed to fetch http://m.test/ 404; apt-get failed"},
		{"head -c 2000 $ROOTFS; exit 3", ": mmdebstrap: exit status 3"},
		{"mkdir $TMPDIR/chroot; mount -t tmpfs none $TMPDIR/chroot; touch $TMPDIR/chroot/x; kill -9 $$; exit 1", "mmdebstrap"},
		{"echo this is no tar", ": mmdebstrap made nothing, or no tar: 15 bytes"},
		{":", ": mmdebstrap made nothing"},
	} {
		eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
			fakeBuilder(t, test.script)
			_, err := Build(ctx, c, Default(), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, test.want)
			}
			if left := leftovers(t, ctx, c); left != nil {
				t.Error(left)
			}
		})
	}
}

func TestBuildWithoutMmdebstrap(t *testing.T) {
	testroot.Need(t)
	t.Setenv("PATH", t.TempDir())
	_, err := Build(namespace(t), store.Client(), Default(), nil)
	if err == nil || !strings.HasSuffix(err.Error(), ": mmdebstrap, which builds the image, is not installed; run: apt-get install mmdebstrap") {
		t.Error(err)
	}
}

// TestBuildCancelled wants the builder's whole tree of processes, its mounts and
// its directory gone.
func TestBuildCancelled(t *testing.T) {
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		state := fakeBuilder(t, `mkdir $TMPDIR/chroot; mount -t tmpfs none $TMPDIR/chroot; head -c 1000 $ROOTFS
			setsid sleep 7654321 </dev/null >/dev/null 2>&1 & trap '' TERM INT; touch $STATE/ready; sleep 7654321; sleep 7654321`)
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			for range 500 {
				if _, err := os.Stat(filepath.Join(state, "ready")); err == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		_, err := Build(ctx, c, Default(), nil)
		if !errors.Is(err, context.Canceled) && !errdefs.IsCanceled(err) {
			t.Error(err)
		}
		if out, err := exec.Command("pgrep", "-f", "sleep 7654321").Output(); err == nil {
			t.Errorf("processes are left: %s", out)
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || bytes.Contains(mounts, []byte(os.Getenv("TMPDIR"))) {
			t.Errorf("mounts are left: %v", err)
		}
		if left := leftovers(t, context.WithoutCancel(ctx), c); left != nil {
			t.Error(left)
		}
	})
}

// TestTempDir wants the directories of dead builds gone, and only those.
func TestTempDir(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	live, remove, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	dead, young := filepath.Join(parent, "exec-server-build-1"), filepath.Join(parent, "exec-server-build-2")
	for _, dir := range []string{dead, young} {
		if err := os.MkdirAll(filepath.Join(dir, "chroot/etc"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hourAgo := time.Now().Add(-time.Hour)
	for _, dir := range []string{dead, live} {
		if err := os.Chtimes(dir, hourAgo, hourAgo); err != nil {
			t.Fatal(err)
		}
	}
	again, removeAgain, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := filepath.Glob(filepath.Join(parent, "*"))
	want := []string{live, young, again}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := errors.Join(remove(), removeAgain()); err != nil {
		t.Error(err)
	}
}

// TestBuildDefault builds the real image, which takes a minute, and runs what
// agents need in it.
func TestBuildDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	testroot.Need(t)
	ctx, c := namespace(t), store.Client()
	start := time.Now()
	p := NewPrinter(os.Stderr)
	img, err := Build(ctx, c, Default(), p)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	infos, err := List(ctx, c)
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	rootFS, err := img.RootFS(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d MiB in %.1f s, layer %s", img.Name(), infos[0].Size>>20, time.Since(start).Seconds(), rootFS[0])
	mounts, err := c.SnapshotService(snapshotter).View(ctx, "view", rootFS[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.SnapshotService(snapshotter).Remove(ctx, "view")
	err = mount.WithReadonlyTempMount(ctx, mounts, func(root string) error {
		out, err := exec.Command("chroot", root, "su", "-", "agent", "-c", `set -e; id; pwd; echo $SHELL
			for p in bash ls git curl python3 rg ps find grep sed gawk diff patch file less flock tar xz; do command -v $p; done
			stat -c '%U %a %n' /workspace /home/agent; test -s /etc/ssl/certs/ca-certificates.crt; python3 -c 'print("hello")'`).CombinedOutput()
		t.Logf("%s", out)
		for _, path := range []string{"etc/hostname", "etc/resolv.conf", "etc/passwd-", "var/log/dpkg.log", "dev/null", "usr/share/man/man1"} {
			if _, serr := os.Lstat(filepath.Join(root, path)); serr == nil {
				t.Errorf("%s is in the image", path)
			}
		}
		if id, ierr := os.ReadFile(filepath.Join(root, "etc/machine-id")); ierr == nil && len(id) != 0 {
			t.Errorf("machine-id: %q", id)
		}
		if lists, _ := filepath.Glob(filepath.Join(root, "var/lib/apt/lists/*Packages*")); len(lists) > 0 {
			t.Errorf("lists: %v", lists)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
