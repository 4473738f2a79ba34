package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Free space in bytes without which a build is not begun: what it takes at its
// peak in its temporary directory, and in the store as layer and snapshot.
const (
	buildTempSpace  = 1 << 30
	buildStoreSpace = 1 << 30
)

// building lets one build run at a time: a second one would most likely be for
// the same image, and they need much disk.
var building = make(chan struct{}, 1)

func lockBuild(ctx context.Context) (unlock func(), err error) {
	select {
	case building <- struct{}{}:
		return func() { <-building }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another build: %w", ctx.Err())
	}
}

// Ensure returns the recipe's image, which it builds if the store lacks it.
func Ensure(ctx context.Context, c *client.Client, r Recipe, p Progress) (client.Image, error) {
	unlock, err := lockBuild(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	img, err := c.GetImage(ctx, r.Name())
	switch {
	case errdefs.IsNotFound(err):
		return build(ctx, c, r, orSilent(p))
	case err != nil:
		return nil, fmt.Errorf("look for the image %s: %w", r.Name(), err)
	}
	if err := img.Unpack(ctx, snapshotter); err != nil {
		return nil, full(fmt.Errorf("unpack the image %s: %w", r.Name(), err))
	}
	return img, nil
}

// Build builds the recipe's image with mmdebstrap, from the host's own sources
// of packages where they carry the recipe's suite. It takes about a minute and
// must be root. An image of the same name is replaced.
func Build(ctx context.Context, c *client.Client, r Recipe, p Progress) (client.Image, error) {
	unlock, err := lockBuild(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return build(ctx, c, r, orSilent(p))
}

func build(ctx context.Context, c *client.Client, r Recipe, p Progress) (_ client.Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("build the image %s: %w", r.Name(), err)
		}
	}()
	if err := r.check(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can make the file system of an image")
	}
	dir, remove, err := tempDir()
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := checkSpace(dir, buildTempSpace); err != nil {
		return nil, err
	}
	if err := checkStoreSpace(ctx, c, buildStoreSpace); err != nil {
		return nil, err
	}
	var img client.Image
	err = underLease(ctx, c, func(ctx context.Context) error {
		p.Step("building " + r.Name() + " from Debian " + r.Suite)
		layer, err := r.layer(ctx, c, dir, p)
		if err != nil {
			return err
		}
		p.Step("unpacking the image")
		img, err = storeImage(ctx, c, r.Name(), layer, r.imageConfig())
		return err
	})
	return img, err
}

// layer streams mmdebstrap's tar into the store.
func (r Recipe) layer(ctx context.Context, c *client.Client, dir string, p Progress) (ocispec.Descriptor, error) {
	w, err := content.OpenWriter(ctx, c.ContentStore(), content.WithRef("exec-server-build-"+r.Name()))
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("open the image store: %w", err)
	}
	defer w.Close()
	if err := w.Truncate(0); err != nil { // left by a build that died
		return ocispec.Descriptor{}, fmt.Errorf("open the image store: %w", err)
	}
	counter := &counter{w: w, progress: p, item: "layer"}
	err = r.mmdebstrap(ctx, dir, counter, p)
	if counter.err != nil { // the cause of what mmdebstrap says about its output
		err = counter.err
	}
	if err == nil && !counter.endsInZeros() {
		err = fmt.Errorf("mmdebstrap made nothing, or no tar: %d bytes", counter.n)
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return commitLayer(ctx, w, counter)
}

func (r Recipe) imageConfig() ocispec.Image {
	created := time.Unix(r.Epoch, 0).UTC()
	host := platforms.DefaultSpec()
	return ocispec.Image{
		Created:  &created,
		Platform: ocispec.Platform{Architecture: host.Architecture, OS: host.OS, Variant: host.Variant},
		Config: ocispec.ImageConfig{
			User:       r.User.Name,
			Env:        r.Config.Env,
			Cmd:        r.Config.Cmd,
			WorkingDir: r.Config.Workdir,
		},
	}
}
