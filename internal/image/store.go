package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
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

// snapshotter is the one that images are unpacked for.
const snapshotter = "overlayfs"

// underLease runs f with a lease in its context that keeps what f writes from
// the garbage collector. What f has not linked to an image when it returns is
// gone when underLease returns.
func underLease(ctx context.Context, c *client.Client, f func(context.Context) error) error {
	manager := c.LeasesService()
	// Should this process die, the collector waits no longer than that.
	lease, err := manager.Create(ctx, leases.WithRandomID(), leases.WithExpiration(2*time.Hour))
	if err != nil {
		return full(fmt.Errorf("reserve room in the image store: %w", err))
	}
	err = f(leases.WithLease(ctx, lease.ID))

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err != nil {
		// The collector leaves an ingest that is not written to for a while.
		resources, _ := manager.ListResources(end, lease)
		for _, r := range resources {
			if r.Type == "ingests" {
				_ = c.ContentStore().Abort(end, r.ID)
			}
		}
	}
	if derr := manager.Delete(end, lease, leases.SynchronousDelete); derr != nil && !errdefs.IsNotFound(derr) {
		err = errors.Join(err, fmt.Errorf("tidy the image store: %w", derr))
	}
	return full(err)
}

// full says in one line that the disk is full if that is the cause. Over a
// socket only the text is left of the system's error.
func full(err error) error {
	if err != nil && (errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), syscall.ENOSPC.Error())) {
		return fmt.Errorf("the disk of the image store is full; free some space or remove images: %w", syscall.ENOSPC)
	}
	return err
}

// writeJSON stores a manifest or config.
func writeJSON(ctx context.Context, c *client.Client, mediaType string, value any, labels map[string]string) (ocispec.Descriptor, error) {
	blob, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(blob), Size: int64(len(blob))}
	err = content.WriteBlob(ctx, c.ContentStore(), "exec-server-"+desc.Digest.String(), bytes.NewReader(blob), desc, content.WithLabels(labels))
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("store the image's %s: %w", mediaType, err)
	}
	return desc, nil
}

// storeImage makes an image of one uncompressed layer that is in the store
// already, unpacks it and gives it its name.
func storeImage(ctx context.Context, c *client.Client, name string, layer ocispec.Descriptor, config ocispec.Image) (client.Image, error) {
	config.RootFS = ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}}
	configDesc, err := writeJSON(ctx, c, ocispec.MediaTypeImageConfig, config, nil)
	if err != nil {
		return nil, err
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    configDesc,
		Layers:    []ocispec.Descriptor{layer},
	}
	target, err := writeJSON(ctx, c, ocispec.MediaTypeImageManifest, manifest, map[string]string{
		"containerd.io/gc.ref.content.config": configDesc.Digest.String(),
		"containerd.io/gc.ref.content.l.0":    layer.Digest.String(),
	})
	if err != nil {
		return nil, err
	}
	record := images.Image{Name: name, Target: target}
	if err := unpack(ctx, c, record); err != nil {
		return nil, err
	}
	return client.NewImage(c, record), setRecord(ctx, c, record)
}

// unpack makes the snapshots of an image whose content is in the store. It goes
// before setRecord, so that there is no image that cannot be used.
func unpack(ctx context.Context, c *client.Client, record images.Image) error {
	if err := client.NewImage(c, record).Unpack(ctx, snapshotter); err != nil {
		return fmt.Errorf("unpack the image: %w", err)
	}
	return nil
}

// setRecord gives an image its name, which it takes from one that has it.
func setRecord(ctx context.Context, c *client.Client, record images.Image) error {
	_, err := c.ImageService().Create(ctx, record)
	if errdefs.IsAlreadyExists(err) {
		_, err = c.ImageService().Update(ctx, record, "target", "labels")
	}
	if err != nil {
		return fmt.Errorf("store the image's name: %w", err)
	}
	return nil
}
