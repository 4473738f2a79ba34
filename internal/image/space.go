package image

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/containerd/containerd/v2/client"
)

// importSpace is the free space in the store, in bytes, without which an import
// or a pull, whose need is not known, is not begun.
const importSpace = 64 << 20

// checkSpace is an error if the file system of dir has less than need bytes free
// for this user. A store that was never written to has no directory yet; its
// parent's file system is then the one.
func checkSpace(dir string, need uint64) error {
	var fs syscall.Statfs_t
	err := syscall.Statfs(dir, &fs)
	for parent := filepath.Dir(dir); errors.Is(err, syscall.ENOENT) && parent != dir; parent = filepath.Dir(dir) {
		dir = parent
		err = syscall.Statfs(dir, &fs)
	}
	if err != nil {
		return fmt.Errorf("look for free space: %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("%s has %d MiB free, %d MiB are needed: %w", dir, free>>20, need>>20, syscall.ENOSPC)
	}
	return nil
}

// checkStoreSpace is checkSpace for the directory of c's content store. A
// containerd that does not tell where that is, is not checked.
func checkStoreSpace(ctx context.Context, c *client.Client, need uint64) error {
	info, err := c.IntrospectionService().Plugins(ctx, "type==io.containerd.content.v1,id==content")
	if err != nil {
		return fmt.Errorf("ask containerd for its store: %w", err)
	}
	for _, p := range info.GetPlugins() {
		if dir := p.GetExports()["root"]; dir != "" {
			return checkSpace(dir, need)
		}
	}
	return nil
}
