package image

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
)

// Info describes an image in the store.
type Info struct {
	Name   string
	Digest digest.Digest
	// Size is that of the content, as it would be exported, in bytes.
	Size int64
	// Created is when the image came into the store under this name.
	Created time.Time
	// Platforms are those that the image is for and that are in the store.
	Platforms []string
	// Containers are the ids of those that use the image.
	Containers []string
	// Problem says what is wrong with an image that cannot be used; else it is "".
	Problem string
}

// List describes all images, by name.
func List(ctx context.Context, c *client.Client) ([]Info, error) {
	records, err := c.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the images: %w", err)
	}
	users, err := containersByImage(ctx, c)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(records))
	for _, r := range records {
		info := Info{Name: r.Name, Digest: r.Target.Digest, Created: r.CreatedAt, Containers: users[r.Name]}
		size, err := client.NewImageWithPlatform(c, r, platforms.All).Size(ctx)
		if err != nil {
			info.Problem = err.Error()
		}
		info.Size = size
		specs, err := images.Platforms(ctx, c.ContentStore(), r.Target)
		if err != nil {
			info.Problem = err.Error()
		}
		for _, spec := range specs {
			if _, _, _, missing, err := images.Check(ctx, c.ContentStore(), r.Target, platforms.OnlyStrict(spec)); err == nil && len(missing) == 0 {
				info.Platforms = append(info.Platforms, platforms.Format(spec))
			}
		}
		if len(info.Platforms) == 0 && info.Problem == "" {
			info.Problem = "its content is not complete"
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// Remove removes an image, and what of its content nothing else uses, from the
// store. Without force it refuses if containers use the image; they live on if
// it is removed, but cannot be made anew.
func Remove(ctx context.Context, c *client.Client, name string, force bool) error {
	record, err := Find(ctx, c, name)
	if err != nil {
		return fmt.Errorf("remove the image: %w", err)
	}
	if !force {
		users, err := containersByImage(ctx, c)
		if err != nil {
			return err
		}
		if ids := users[record.Name]; len(ids) > 0 {
			return fmt.Errorf("remove the image: %q is used by %s: %w", record.Name, strings.Join(ids, ", "), errdefs.ErrFailedPrecondition)
		}
	}
	if err := c.ImageService().Delete(ctx, record.Name, images.SynchronousDelete()); err != nil {
		return fmt.Errorf("remove the image %q: %w", record.Name, err)
	}
	return nil
}

func containersByImage(ctx context.Context, c *client.Client) (map[string][]string, error) {
	containers, err := c.ContainerService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	users := map[string][]string{}
	for _, one := range containers {
		users[one.Image] = append(users[one.Image], one.ID)
	}
	return users, nil
}
