package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
)

// localPrefix begins the names of images that this program builds. They have no
// registry, and Normalize leaves them alone.
const localPrefix = "exec-server/"

// Normalize spells an image's name out as docker does: with the registry and
// namespace that short names stand for, and with the tag "latest" if it has
// neither tag nor digest.
func Normalize(name string) (string, error) {
	if strings.HasPrefix(name, localPrefix) {
		if _, err := reference.Parse(name); err != nil {
			return "", fmt.Errorf("the image name %q is not valid: %w", name, err)
		}
		return name, nil
	}
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("the image name %q is not valid: %w", name, err)
	}
	return ref.String(), nil
}

// Find returns the store's record of an image under the name as it stands or as
// Normalize spells it.
func Find(ctx context.Context, c *client.Client, name string) (images.Image, error) {
	record, err := c.ImageService().Get(ctx, name)
	if errdefs.IsNotFound(err) {
		if full, nerr := Normalize(name); nerr == nil && full != name {
			record, err = c.ImageService().Get(ctx, full)
		}
	}
	if errdefs.IsNotFound(err) {
		return images.Image{}, fmt.Errorf("there is no image %q: %w", name, errdefs.ErrNotFound)
	}
	if err != nil {
		return images.Image{}, fmt.Errorf("look for the image %q: %w", name, err)
	}
	return record, nil
}
