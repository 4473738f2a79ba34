package containerd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrImageMissing says that the store does not have the image. It is also an
// errdefs.ErrNotFound.
var ErrImageMissing = fmt.Errorf("image missing: %w", errdefs.ErrNotFound)

// imageMissing is an ErrImageMissing that names the image.
type imageMissing string

func (e imageMissing) Error() string {
	return fmt.Sprintf("image %q is not in the store; \"exec-server image ls\" lists what is", string(e))
}

func (e imageMissing) Unwrap() error { return ErrImageMissing }

// image finds an image and its configuration, and unpacks it if need be.
func (r *Runtime) image(ctx context.Context, ref string) (client.Image, ocispec.ImageConfig, error) {
	var config ocispec.Image
	image, err := r.client.GetImage(ctx, ref)
	if errdefs.IsNotFound(err) {
		return nil, config.Config, imageMissing(ref)
	}
	if err != nil {
		return nil, config.Config, fmt.Errorf("find image %q: %w", ref, err)
	}
	desc, err := image.Config(ctx)
	if err != nil {
		return nil, config.Config, fmt.Errorf("image %q: %w", ref, err)
	}
	text, err := content.ReadBlob(ctx, image.ContentStore(), desc)
	if err != nil {
		return nil, config.Config, fmt.Errorf("image %q: read its configuration: %w", ref, err)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, config.Config, fmt.Errorf("image %q: configuration: %w", ref, err)
	}
	unpacked, err := image.IsUnpacked(ctx, snapshotter)
	if err == nil && !unpacked {
		err = image.Unpack(ctx, snapshotter)
	}
	if err != nil {
		return nil, config.Config, fmt.Errorf("unpack image %q: %w", ref, err)
	}
	return image, config.Config, nil
}
