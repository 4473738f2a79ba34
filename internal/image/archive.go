package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// importArchive stores the images of an OCI layout or a docker save, which is
// in the store as a blob. The client's own Import names images before it knows
// that they are complete.
func importArchive(ctx context.Context, c *client.Client, blob ocispec.Descriptor, name string, p Progress) ([]string, error) {
	store := c.ContentStore()
	ra, err := store.ReaderAt(ctx, blob)
	if err != nil {
		return nil, fmt.Errorf("read it back: %w", err)
	}
	defer ra.Close()
	desc, err := archive.ImportIndex(ctx, store, content.NewReader(ra))
	if err != nil {
		return nil, err
	}
	found, err := archived(ctx, store, desc)
	if err != nil {
		return nil, err
	}
	if name != "" {
		if len(found) != 1 {
			return nil, fmt.Errorf("it holds %d images, so that one name cannot be for all", len(found))
		}
		found[0].names = []string{name}
	}
	// Everything is linked and unpacked before the first name is stored.
	var records []images.Image
	for _, f := range found {
		if len(f.names) == 0 {
			return nil, fmt.Errorf("the image %s in it has no name; give it one", f.target.Digest)
		}
		handler := images.SetChildrenLabels(store, images.FilterPlatforms(images.ChildrenHandler(store), platforms.Default()))
		if err := images.WalkNotEmpty(ctx, handler, f.target); err != nil {
			return nil, incomplete(err)
		}
		for _, n := range f.names {
			records = append(records, images.Image{Name: n, Target: f.target})
		}
	}
	for _, r := range records {
		p.Step("unpacking " + r.Name)
		if err := unpack(ctx, c, r); err != nil {
			return nil, incomplete(err)
		}
	}
	var names []string
	for _, r := range records {
		if err := setRecord(ctx, c, r); err != nil {
			return nil, err
		}
		names = append(names, r.Name)
	}
	return names, nil
}

// incomplete says in a user's words what containerd says about a broken image.
func incomplete(err error) error {
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("the image is incomplete or not for this machine (%s): %w", platforms.DefaultString(), err)
	}
	return err
}

type archivedImage struct {
	target ocispec.Descriptor
	names  []string
}

// archived lists the images of an archive's index, each once with all its names.
func archived(ctx context.Context, store content.Provider, index ocispec.Descriptor) ([]archivedImage, error) {
	text, err := content.ReadBlob(ctx, store, index)
	if err != nil {
		return nil, fmt.Errorf("read its index: %w", err)
	}
	var idx ocispec.Index
	if err := json.Unmarshal(text, &idx); err != nil {
		return nil, fmt.Errorf("read its index.json: %w", err)
	}
	var found []archivedImage
	for _, m := range idx.Manifests {
		if m.Annotations[images.AnnotationManifestSubject] != "" {
			continue // a signature or the like
		}
		name := m.Annotations[images.AnnotationImageName]
		if name == "" {
			// A layout may have the bare tag here, which names nothing.
			name = m.Annotations[ocispec.AnnotationRefName]
			if full, err := Normalize(name); err != nil || full != name {
				name = ""
			}
		}
		i := slices.IndexFunc(found, func(f archivedImage) bool { return f.target.Digest == m.Digest })
		if i < 0 {
			i = len(found)
			m.Annotations = nil
			found = append(found, archivedImage{target: m})
		}
		if name != "" && !slices.Contains(found[i].names, name) {
			found[i].names = append(found[i].names, name)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it holds no image")
	}
	return found, nil
}
