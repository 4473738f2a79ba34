package containerd

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/typeurl/v2"

	"github.com/exec-server/exec-server/internal/runtime"
)

// The labels of our containers.
const (
	labelName     = "exec-server/name"
	labelInstance = "exec-server/instance"
)

// notesKey is the extension of our containers that holds the notes.
const notesKey = "exec-server"

// notes is what a later daemon must know of a container. It is no label because
// those have at most 4096 bytes.
type notes struct {
	Spec   runtime.Spec
	IDBase uint32
}

func init() {
	typeurl.Register(&notes{}, "exec-server", "notes", "1")
}

// withNotes notes it in a new container.
func withNotes(n notes) client.NewContainerOpts {
	return client.WithContainerExtension(notesKey, &n)
}

// notesOf returns what was noted.
func notesOf(ctx context.Context, c client.Container) (notes, error) {
	var n notes
	extensions, err := c.Extensions(ctx)
	if err != nil {
		return n, err
	}
	ext, ok := extensions[notesKey]
	if !ok {
		return n, fmt.Errorf("container %s was not made by exec-server", c.ID())
	}
	return n, typeurl.UnmarshalTo(ext, &n)
}
