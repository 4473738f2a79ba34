package fs

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// Visitor takes what a walk meets.
type Visitor interface {
	// Found is called for every entry, a directory or a regular file.
	Found(uri, path string, directory bool)
	// Failed is called for what could not be looked at.
	Failed(uri, message string)
}

// Walk walks as fs/walk does when it follows links to directories. It reports
// true if it was cut at one of the bounds. Only a root that is not there is an
// error.
func Walk(root proto.URI, depth, directories, entries uint64, v Visitor) (truncated bool, err error) {
	w := walker{root: root, visitor: v, walkOptions: walkOptions{
		maxDepth: depth, maxDirectories: directories, maxEntries: entries, follow: true,
	}}
	err = w.run()
	return w.truncated, err
}

// ReadUpTo reads the first bytes of a regular file, at most limit of them. It
// fails on anything else, without waiting for it.
func ReadUpTo(path string, limit int64) ([]byte, error) {
	file, _, err := pathPlace(path, true).open(unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, 0, limit))
}
