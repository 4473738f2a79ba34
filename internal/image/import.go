package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ImportOptions say what a root file system that comes without a configuration
// is to run with, and who hears of it.
type ImportOptions struct {
	// User is "name", "uid", "name:group" or "uid:gid"; "" is root.
	User string
	// Cwd is "/workspace" if empty.
	Cwd string
	// Env is, if empty, a PATH and LANG=C.UTF-8.
	Env []string
	// Progress may be nil.
	Progress Progress
}

// Import stores the images of a tar, plain or compressed with gzip or zstd, and
// returns their names. The tar is an OCI layout or comes from docker save; then
// a name renames the only image in it, and "" keeps the names that it has. Any
// other tar is taken for a root file system, which needs a name.
func Import(ctx context.Context, c *client.Client, r io.Reader, name string, o ImportOptions) ([]string, error) {
	o.Progress = orSilent(o.Progress)
	if name != "" {
		var err error
		if name, err = Normalize(name); err != nil {
			return nil, err
		}
	}
	if err := checkStoreSpace(ctx, c, importSpace); err != nil {
		return nil, fmt.Errorf("import the image: %w", err)
	}
	var names []string
	err := underLease(ctx, c, func(ctx context.Context) error {
		o.Progress.Step("reading the image")
		blob, isArchive, err := spool(ctx, c, r, o.Progress)
		if err != nil {
			return err
		}
		if isArchive {
			names, err = importArchive(ctx, c, blob, name, o.Progress)
			return err
		}
		if name == "" {
			return errors.New("the tar is a root file system and has no name of its own; give it one")
		}
		o.Progress.Step("unpacking " + name)
		names = []string{name}
		_, err = storeImage(ctx, c, name, blob, o.imageConfig())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("import the image: %w", err)
	}
	return names, nil
}

// spool stores the whole tar, uncompressed, and says whether it is an archive of
// images. What tells is often at its end, so a tar of images is written twice;
// the first copy goes with the lease.
func spool(ctx context.Context, c *client.Client, r io.Reader, p Progress) (blob ocispec.Descriptor, isArchive bool, err error) {
	input := cancellable(ctx, r)
	defer input.Close()
	stream, err := compression.DecompressStream(input)
	if err != nil {
		return blob, false, fmt.Errorf("decompress it: %w", err)
	}
	defer stream.Close()
	lease, _ := leases.FromContext(ctx)
	w, err := content.OpenWriter(ctx, c.ContentStore(), content.WithRef("exec-server-import-"+lease))
	if err != nil {
		return blob, false, fmt.Errorf("open the image store: %w", err)
	}
	defer w.Close()
	counter := &counter{w: w, progress: p, item: "tar"}
	tee := io.TeeReader(stream, counter)
	entries := 0
	for archive := tar.NewReader(tee); ; entries++ {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return blob, false, badTar(err, counter, entries)
		}
		switch path.Clean(header.Name) {
		case ocispec.ImageLayoutFile, "manifest.json":
			isArchive = true
		}
	}
	if entries == 0 {
		return blob, false, errors.New("there is nothing in it")
	}
	// The reader stops before the padding at the end, which the digest covers.
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return blob, false, badTar(err, counter, entries)
	}
	// Nor does it mind if the input stops between two entries.
	if !counter.endsInZeros() {
		return blob, false, badTar(io.ErrUnexpectedEOF, counter, entries)
	}
	blob, err = commitLayer(ctx, w, counter)
	return blob, isArchive, err
}

// badTar tells a full disk and a cancelled read from a tar that is none.
func badTar(err error, counter *counter, entries int) error {
	switch {
	case counter.err != nil:
		return fmt.Errorf("write it to the image store: %w", counter.err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the tar breaks off after %d entries and %d bytes", entries, counter.n)
	case errors.Is(err, tar.ErrHeader) && entries == 0:
		return errors.New("it is not a tar, plain or compressed with gzip or zstd")
	}
	return fmt.Errorf("the tar cannot be read after %d entries: %w", entries, err)
}

// cancellable is r until the context ends, even while a read of r blocks. The
// caller closes it. A last read of r may still be going on then.
func cancellable(ctx context.Context, r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
		stop()
	}()
	return out
}

func (o ImportOptions) imageConfig() ocispec.Image {
	now, host := time.Now().UTC(), platforms.DefaultSpec()
	config := ocispec.ImageConfig{User: o.User, Env: o.Env, WorkingDir: o.Cwd, Cmd: []string{"/bin/sh"}}
	if config.WorkingDir == "" {
		config.WorkingDir = "/workspace"
	}
	if len(config.Env) == 0 {
		config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	}
	return ocispec.Image{
		Created:  &now,
		Platform: ocispec.Platform{Architecture: host.Architecture, OS: host.OS, Variant: host.Variant},
		Config:   config,
	}
}
