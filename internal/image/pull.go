package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Pull fetches the image that ref names, spelled out by Normalize, for this
// machine's platform. A registry on localhost is spoken to without TLS, any
// other one with. Credentials are those that docker login left. An image of the
// same name is replaced.
func Pull(ctx context.Context, c *client.Client, ref string, p Progress) (client.Image, error) {
	p = orSilent(p)
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return nil, fmt.Errorf("pull the image: the name %q is not valid: %w", ref, err)
	}
	if err := checkStoreSpace(ctx, c, importSpace); err != nil {
		return nil, fmt.Errorf("pull the image %s: %w", named, err)
	}
	credentials, err := dockerCredentials(reference.Domain(named))
	if err != nil {
		return nil, fmt.Errorf("pull the image %s: %w", named, err)
	}
	hosts := docker.ConfigureDefaultRegistries(
		docker.WithPlainHTTP(docker.MatchLocalhost),
		docker.WithAuthorizer(docker.NewDockerAuthorizer(docker.WithAuthCreds(credentials))))
	var img client.Image
	err = underLease(ctx, c, func(ctx context.Context) error {
		p.Step("pulling " + named.String())
		watch := &pullWatch{client: c, progress: p}
		watch.start(ctx)
		defer watch.stop(ctx)
		img, err = c.Pull(ctx, named.String(),
			client.WithResolver(docker.NewResolver(docker.ResolverOptions{Hosts: hosts})),
			client.WithImageHandler(images.HandlerFunc(watch.handle)),
			client.WithPullUnpack,
			client.WithPullSnapshotter(snapshotter))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pull the image %s: %w", named, pullError(err))
	}
	return img, nil
}

// pullError puts the commonest errors into a user's words.
func pullError(err error) error {
	status, _ := errors.AsType[remoteerrors.ErrUnexpectedStatus](err)
	switch {
	case errors.Is(err, docker.ErrInvalidAuthorization), status.StatusCode == http.StatusUnauthorized, status.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the registry wants other credentials; use docker login: %w", err)
	case errdefs.IsNotFound(err):
		return fmt.Errorf("the registry does not have it for this machine: %w", err)
	}
	return err
}

// pullWatch reports how far the layers of a pull have come.
type pullWatch struct {
	client   *client.Client
	progress Progress
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu     sync.Mutex
	layers []ocispec.Descriptor
}

// handle learns of the pull's parts.
func (w *pullWatch) handle(_ context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if images.IsLayerType(desc.MediaType) {
		w.mu.Lock()
		w.layers = append(w.layers, desc)
		w.mu.Unlock()
	}
	return nil, nil
}

func (w *pullWatch) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.done.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-tick.C:
				w.report(ctx)
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
}

func (w *pullWatch) stop(ctx context.Context) {
	w.cancel()
	w.done.Wait()
	w.report(ctx)
}

func (w *pullWatch) report(ctx context.Context) {
	w.mu.Lock()
	layers := w.layers
	w.mu.Unlock()
	store := w.client.ContentStore()
	for _, layer := range layers {
		name := strings.TrimPrefix(layer.Digest.String(), "sha256:")[:12]
		if status, err := store.Status(ctx, remotes.MakeRefKey(ctx, layer)); err == nil {
			w.progress.Bytes(name, status.Offset, layer.Size)
		} else if _, err := store.Info(ctx, layer.Digest); err == nil {
			w.progress.Bytes(name, layer.Size, layer.Size)
		}
	}
}
