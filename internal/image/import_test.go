package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"

	"github.com/exec-server/exec-server/internal/testroot"
)

func TestImportRootfs(t *testing.T) {
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		p := &recorder{}
		data := rootfs(t)
		names, err := Import(ctx, c, bytes.NewReader(data), "exec-server/test:1", ImportOptions{User: "1000:1000", Env: []string{"A=1"}, Cwd: "/srv", Progress: p})
		if err != nil || !slices.Equal(names, []string{"exec-server/test:1"}) {
			t.Fatal(names, err)
		}
		if p.bytes["tar"] != int64(len(data)) || !slices.Contains(p.steps, "unpacking exec-server/test:1") {
			t.Errorf("progress: %+v", p)
		}
		img := check(t, ctx, c, names[0])
		spec, err := img.Spec(ctx)
		if err != nil || spec.Config.User != "1000:1000" || spec.Config.WorkingDir != "/srv" || !slices.Equal(spec.Config.Env, []string{"A=1"}) {
			t.Errorf("%+v, %v", spec, err)
		}
		// The same compressed is the same layer.
		if _, err = Import(ctx, c, bytes.NewReader(zip(t, data)), "exec-server/test:2", ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		other, err := check(t, ctx, c, "exec-server/test:2").RootFS(ctx)
		if err != nil || other[0] != spec.RootFS.DiffIDs[0] {
			t.Error(other, err)
		}
	})
}

// check wants a usable image of that name.
func check(t *testing.T, ctx context.Context, c *client.Client, name string) client.Image {
	t.Helper()
	img, err := c.GetImage(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := img.IsUnpacked(ctx, snapshotter); !ok || err != nil {
		t.Errorf("unpacked: %v, %v", ok, err)
	}
	return img
}

func TestImportArchives(t *testing.T) {
	i := makeImage(t, rootfs(t))
	for name, test := range map[string]struct {
		data      []byte
		name      string
		want, not string
	}{
		"layout":         {i.layout(t, nil, "registry.test/a:1", "registry.test/b:1"), "", "registry.test/a:1 registry.test/b:1", ""},
		"layout renamed": {i.layout(t, nil, "registry.test/a:1", "registry.test/b:1"), "registry.test/c", "registry.test/c:latest", "registry.test/a:1"},
		"zipped":         {zip(t, i.layout(t, nil, "registry.test/a:1")), "", "registry.test/a:1", ""},
		"docker":         {i.dockerSave(t, "registry.test/d:1", "registry.test/e:2"), "", "registry.test/d:1 registry.test/e:2", ""},
		"docker renamed": {i.dockerSave(t, "registry.test/d:1"), "exec-server/x", "exec-server/x", "registry.test/d:1"},
		"docker unnamed": {i.dockerSave(t), "registry.test/f:3", "registry.test/f:3", ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
				names, err := Import(ctx, c, bytes.NewReader(test.data), test.name, ImportOptions{})
				if slices.Sort(names); err != nil || strings.Join(names, " ") != test.want {
					t.Fatal(names, err)
				}
				for _, n := range names {
					spec, err := check(t, ctx, c, n).Spec(ctx)
					if err != nil || spec.Config.User != "nobody" {
						t.Error(spec, err)
					}
				}
				if _, err := Find(ctx, c, test.not); !errdefs.IsNotFound(err) {
					t.Errorf("%q: %v", test.not, err)
				}
			})
		})
	}
}

func TestImportBad(t *testing.T) {
	data, good := rootfs(t), makeImage(t, rootfs(t))
	lying := makeImage(t, data) // its layer is not the one of its config
	lying.layer = zip(t, makeTar(t, file{"other", []byte("x")}))
	lying.manifest = bytes.ReplaceAll(good.manifest, []byte(describe("", good.layer).Digest), []byte(describe("", lying.layer).Digest))
	lying.manifest = bytes.ReplaceAll(lying.manifest, fmt.Appendf(nil, `"size":%d`, len(good.layer)), fmt.Appendf(nil, `"size":%d`, len(lying.layer)))
	unreadable := []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03junk")
	for _, test := range []struct {
		want string
		data []byte
		name string
	}{
		{"there is nothing in it", makeTar(t), "a:1"},
		{"there is nothing in it", nil, "a:1"},
		{"it is not a tar, plain or compressed", bytes.Repeat([]byte("no tar at all\n"), 100), "a:1"},
		{"the tar breaks off after 3 entries and 2048 bytes", data[:512*4], "a:1"},
		{"the tar breaks off after 3 entries and 1950 bytes", data[:1950], "a:1"},
		{"the tar breaks off after 0 entries", unreadable, "a:1"},
		{"the tar is a root file system and has no name", data, ""},
		{`the image name "A B" is not valid: invalid reference`, data, "A B"},
		{"the image is incomplete or not for this machine", good.layout(t, without(good.layer), "registry.test/a:1"), ""},
		{"the image is incomplete or not for this machine", good.layout(t, without(good.manifest), "registry.test/a:1"), ""},
		{"the image is incomplete or not for this machine", good.layout(t, without(good.config), "registry.test/a:1"), ""},
		{"wrong diff id calculated", lying.layout(t, nil, "registry.test/a:1"), ""},
		{"it holds no image", good.layout(t, nil), ""},
		{"has no name; give it one", good.layout(t, nil, ""), ""},
		{`untar manifest "manifest.json": invalid character`, makeTar(t, file{"manifest.json", []byte("x")}), ""},
		{`layer "abc/layer.tar" not found`, makeTar(t, file{"c.json", good.config}, file{"manifest.json", []byte(`[{"Config":"c.json","Layers":["abc/layer.tar"]}]`)}), ""},
		{"unsupported OCI version 9", makeTar(t, file{"oci-layout", []byte(`{"imageLayoutVersion":"9"}`)}), ""},
		{"it holds 2 images, so that one name", makeTar(t, twoImages(t)...), "a:1"},
	} {
		t.Run("", func(t *testing.T) {
			eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
				names, err := Import(ctx, c, bytes.NewReader(test.data), test.name, ImportOptions{})
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, %v, want %s", names, err, test.want)
				}
				if infos, err := List(ctx, c); len(infos) != 0 || err != nil {
					t.Error(infos, err)
				}
				for _, left := range leftovers(t, ctx, c) {
					t.Errorf("left in the store: %s", left)
				}
			})
		})
	}
}

func twoImages(t *testing.T) []file {
	a, b := makeImage(t, rootfs(t)), makeImage(t, makeTar(t, file{"b", nil}))
	return []file{{"1", a.config}, {"2", b.config}, {"l1", a.layerTar}, {"l2", b.layerTar},
		{"manifest.json", []byte(`[{"Config":"1","Layers":["l1"]},{"Config":"2","Layers":["l2"]}]`)}}
}

// TestImportCancelled ends an import whose input has stopped in the middle.
func TestImportCancelled(t *testing.T) {
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		silent, end := io.Pipe()
		defer end.Close()
		half := io.MultiReader(bytes.NewReader(rootfs(t)[:1024]), silent)
		_, err := Import(ctx, c, half, "a:1", ImportOptions{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if left := leftovers(t, context.WithoutCancel(ctx), c); left != nil {
			t.Error(left)
		}
	})
}

func TestRemove(t *testing.T) {
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		err := Remove(ctx, c, "registry.test/none", false)
		if want := `remove the image: there is no image "registry.test/none": not found`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err = Import(ctx, c, bytes.NewReader(rootfs(t)), "registry.test/a", ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"one", "two"} {
			if _, err := c.ContainerService().Create(ctx, containers.Container{ID: id, Image: "registry.test/a:latest", Runtime: containers.RuntimeInfo{Name: "x"}}); err != nil {
				t.Fatal(err)
			}
			defer c.ContainerService().Delete(ctx, id)
		}
		infos, err := List(ctx, c)
		if err != nil || len(infos) != 1 || !slices.Equal(infos[0].Containers, []string{"one", "two"}) ||
			len(infos[0].Platforms) != 1 || infos[0].Size < 4000 || infos[0].Problem != "" || infos[0].Created.IsZero() {
			t.Errorf("%+v, %v", infos, err)
		}
		err = Remove(ctx, c, "registry.test/a", false)
		if want := `remove the image: "registry.test/a:latest" is used by one, two: failed precondition`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if err := Remove(ctx, c, "registry.test/a", true); err != nil {
			t.Error(err)
		}
	})
}

// TestFullDisk has the store on a file system that is too small.
func TestFullDisk(t *testing.T) {
	testroot.Need(t)
	dir := t.TempDir()
	if err := (&mount.Mount{Type: "tmpfs", Source: "tmpfs", Options: []string{"size=160m"}}).Mount(dir); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mount.UnmountAll(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	store.Stop() // there can only be one in a process
	small, err := startStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	store = small
	defer func() {
		small.Stop()
		if store, err = startStore(storeDir); err != nil {
			t.Fatal(err)
		}
	}()
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		big := makeTar(t, file{"big", make([]byte, 150<<20)})
		_, err := Import(ctx, c, bytes.NewReader(big), "a:1", ImportOptions{})
		want := "import the image: the disk of the image store is full; free some space or remove images: no space left on device"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if left := leftovers(t, ctx, c); left != nil {
			t.Error(left)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 80<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		_, err := Import(ctx, c, strings.NewReader("not read"), "a:1", ImportOptions{})
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "MiB free, 64 MiB are needed") {
			t.Error(err)
		}
	})
}
