package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// file is an entry of a tar; a directory if the name ends in a slash.
type file struct {
	name string
	data []byte
}

func makeTar(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
		if f.name[len(f.name)-1] == '/' {
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
	return out.Bytes()
}

func rootfs(t *testing.T) []byte {
	return makeTar(t, file{"./", nil}, file{"./bin/", nil}, file{"./bin/sh", []byte("#!/bin/false\n")}, file{"./etc/", nil})
}

func zip(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// testImage is an image of one gzipped layer, as the blobs that a registry or a
// layout has.
type testImage struct {
	layerTar                []byte
	layer, config, manifest []byte
}

func makeImage(t *testing.T, layerTar []byte) testImage {
	t.Helper()
	i := testImage{layerTar: layerTar, layer: zip(t, layerTar)}
	i.config = toJSON(t, ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Config:   ocispec.ImageConfig{User: "nobody", WorkingDir: "/srv"},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layerTar)}},
	})
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest,
		Config: describe(ocispec.MediaTypeImageConfig, i.config),
		Layers: []ocispec.Descriptor{describe(ocispec.MediaTypeImageLayerGzip, i.layer)}}
	m.SchemaVersion = 2
	i.manifest = toJSON(t, m)
	return i
}

func describe(mediaType string, b []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
}

func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// without leaves a blob out of a layout.
func without(blob []byte) map[string]bool { return map[string]bool{sum(blob): true} }

// layout is the image as an OCI layout, once in the index for each name.
func (i testImage) layout(t *testing.T, without map[string]bool, names ...string) []byte {
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex}
	index.SchemaVersion = 2
	for _, name := range names {
		desc := describe(ocispec.MediaTypeImageManifest, i.manifest)
		desc.Annotations = map[string]string{"io.containerd.image.name": name}
		index.Manifests = append(index.Manifests, desc)
	}
	files := []file{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", toJSON(t, index)}, {"blobs/", nil}}
	for _, b := range [][]byte{i.layer, i.config, i.manifest} {
		if !without[sum(b)] {
			files = append(files, file{"blobs/sha256/" + sum(b), b})
		}
	}
	return makeTar(t, files...)
}

// dockerSave is the image as old dockers write it: what tells comes last.
func (i testImage) dockerSave(t *testing.T, tags ...string) []byte {
	manifest := []map[string]any{{"Config": sum(i.config) + ".json", "RepoTags": tags, "Layers": []string{"abc/layer.tar"}}}
	return makeTar(t, file{"abc/", nil}, file{"abc/layer.tar", i.layerTar}, file{sum(i.config) + ".json", i.config},
		file{"manifest.json", toJSON(t, manifest)})
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
