package containerd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"
)

// probeIDMap tries whether the file system that has the snapshots supports
// id-mapped mounts, and whether containerd would use them. The error says why
// it is false.
func (r *Runtime) probeIDMap(ctx context.Context) (bool, error) {
	capabilities, err := r.client.GetSnapshotterCapabilities(ctx, snapshotter)
	if err != nil {
		return false, fmt.Errorf("ask containerd for the snapshotter %s: %w", snapshotter, err)
	}
	if !slices.Contains(capabilities, "remap-ids") {
		return false, fmt.Errorf("containerd's snapshotter %s does not offer it", snapshotter)
	}
	root, err := r.snapshotRoot(ctx)
	if err != nil {
		return false, err
	}
	return tryIDMap(root)
}

// snapshotRoot is the directory of the snapshots.
func (r *Runtime) snapshotRoot(ctx context.Context) (string, error) {
	if s := r.opts.Server; s != nil {
		return filepath.Join(s.opts.Root, "io.containerd.snapshotter.v1."+snapshotter), nil
	}
	found, err := r.client.IntrospectionService().Plugins(ctx, "type==io.containerd.snapshotter.v1,id=="+snapshotter)
	if err != nil || len(found.Plugins) == 0 {
		return "", fmt.Errorf("ask containerd for the snapshotter %s: %w", snapshotter, err)
	}
	return found.Plugins[0].Exports["root"], nil
}

// tryIDMap maps a copy of the mount of dir, which is never attached.
func tryIDMap(dir string) (bool, error) {
	const mapping = "0:1879048192:65536"
	userns, err := mount.GetUsernsFD(mapping, mapping)
	if err != nil {
		return false, fmt.Errorf("make a user namespace: %w", err)
	}
	defer userns.Close()
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return false, fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(tree)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set:  unix.MOUNT_ATTR_IDMAP,
		Userns_fd: uint64(userns.Fd()),
	})
	if err != nil {
		return false, fmt.Errorf("map the file system of %s: %w", dir, err)
	}
	return true, nil
}

// withSnapshot makes the container's file system from the image, so that the
// image's root is the one of the container.
func (r *Runtime) withSnapshot(id string, image client.Image, ids idRange) client.NewContainerOpts {
	if r.idmap {
		return client.WithNewSnapshot(id, image, client.WithUserNSRemapperLabels(ids.mappings(), ids.mappings()))
	}
	return client.WithUserNSRemappedSnapshot(id, image, ids.mappings(), ids.mappings())
}
