package image

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// counter counts and reports what is written through it.
type counter struct {
	w        io.Writer
	progress Progress
	item     string
	n        int64
	err      error
	// zeros is how many bytes at the end of what was written are 0.
	zeros int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.err = err
	if tail := bytes.TrimRight(b[:n], "\x00"); len(tail) > 0 {
		c.zeros = int64(n - len(tail))
	} else {
		c.zeros += int64(n)
	}
	c.progress.Bytes(c.item, c.n, 0)
	return n, err
}

// endsInZeros says whether there is the block of zeros that ends every tar.
func (c *counter) endsInZeros() bool { return c.zeros >= 512 }

// commitLayer puts an uncompressed layer, which was written to w through the
// counter, into the store.
func commitLayer(ctx context.Context, w content.Writer, counter *counter) (ocispec.Descriptor, error) {
	counter.progress.Bytes(counter.item, counter.n, counter.n)
	layer := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: w.Digest(), Size: counter.n}
	if err := w.Commit(ctx, layer.Size, layer.Digest); err != nil && !errdefs.IsAlreadyExists(err) {
		return ocispec.Descriptor{}, fmt.Errorf("store the layer: %w", err)
	}
	return layer, nil
}
