package containerd

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// file is a file of a test's image; a directory if it ends in a slash.
type file struct {
	name string
	mode int64
	data []byte
	link string
}

// busyboxImage imports an image with a shell.
func busyboxImage(t testing.TB, ctx context.Context, c *client.Client) string {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatalf("install busybox-static: %v", err)
	}
	files := []file{
		{name: "bin/", mode: 0o755}, {name: "etc/", mode: 0o755}, {name: "tmp/", mode: 0o1777},
		{name: "bin/busybox", mode: 0o755, data: busybox},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")},
	}
	for _, name := range []string{"sh", "id", "ls", "cat", "stat", "ps", "ip", "mount", "df", "dd", "sleep", "hostname", "touch", "nproc"} {
		files = append(files, file{name: "bin/" + name, link: "busybox"})
	}
	return importImage(t, ctx, c, "test/busybox:1", files, ocispec.ImageConfig{
		User: "user", Env: []string{"PATH=/bin", "FROM=image"}, WorkingDir: "/tmp",
	})
}

// staticImage imports an image of one static binary.
func staticImage(t testing.TB, ctx context.Context, c *client.Client) string {
	return importImage(t, ctx, c, "test/static:1",
		[]file{{name: "app", mode: 0o755, data: testAgent}}, ocispec.ImageConfig{})
}

func importImage(t testing.TB, ctx context.Context, c *client.Client, name string, files []file, config ocispec.ImageConfig) string {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
		if f.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		} else if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	ctx, done, err := c.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer done(ctx)
	put := func(mediaType string, data []byte, labels map[string]string) ocispec.Descriptor {
		t.Helper()
		desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
		err := content.WriteBlob(ctx, c.ContentStore(), desc.Digest.String(), bytes.NewReader(data), desc, content.WithLabels(labels))
		if err != nil {
			t.Fatal(err)
		}
		return desc
	}
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	layerDesc := put(ocispec.MediaTypeImageLayer, layer.Bytes(), nil)
	configDesc := put(ocispec.MediaTypeImageConfig, encode(ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Config:   config,
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{layerDesc.Digest}},
	}), nil)
	manifest := put(ocispec.MediaTypeImageManifest, encode(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: configDesc, Layers: []ocispec.Descriptor{layerDesc},
	}), map[string]string{
		"containerd.io/gc.ref.content.config": configDesc.Digest.String(),
		"containerd.io/gc.ref.content.l.0":    layerDesc.Digest.String(),
	})
	_, err = c.ImageService().Create(ctx, images.Image{Name: name, Target: manifest})
	if err != nil && !errdefs.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	image, err := c.GetImage(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Unpack(ctx, snapshotter); err != nil {
		t.Fatal(err)
	}
	return name
}
