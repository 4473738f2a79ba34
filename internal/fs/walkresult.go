package fs

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/exec-server/exec-server/internal/proto"
)

// firstEntries returns the n entries of a directory that come first by name.
// Dangling links do not count.
func firstEntries(dir *os.File, n int) ([]os.DirEntry, error) {
	var first []os.DirEntry
	for {
		batch, err := dir.ReadDir(readBatch)
		for _, entry := range batch {
			if entry.Type() == os.ModeSymlink {
				if _, err := os.Stat(filepath.Join(dir.Name(), entry.Name())); err != nil {
					continue
				}
			}
			first = append(first, entry)
		}
		if err != nil || len(first) > n+8*readBatch {
			slices.SortFunc(first, func(a, b os.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
			if len(first) > n {
				clear(first[n:])
				first = first[:n]
			}
		}
		if err == io.EOF {
			return first, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// addEntry adds an entry to the result.
func (w *walker) addEntry(path, kind string) error {
	uri := proto.FileURI(path).String()
	return w.add(&w.entries, len(uri), uri, "kind", kind)
}

// addError adds what could not be looked at to the result.
func (w *walker) addError(path string, err error) error {
	uri, message := proto.FileURI(path).String(), proto.WireError(err).Message
	return w.add(&w.errors, len(uri)+len(message), uri, "message", message)
}

// add appends an item of two members to a list. Its size is what it counts
// besides 64 for the rest.
func (w *walker) add(list *[]byte, size int, uri, member, text string) error {
	if w.size += size + 64; w.size > maxWalkSize {
		return errCut
	}
	if len(*list) > 0 {
		*list = append(*list, ',')
	}
	*list = proto.AppendString(append(*list, `{"path":`...), uri)
	*list = append(proto.AppendString(append(*list, ','), member), ':')
	*list = append(proto.AppendString(*list, text), '}')
	return nil
}

func (w *walker) result() proto.Result {
	out := append([]byte(`{"entries":[`), w.entries...)
	out = append(append(out, `],"errors":[`...), w.errors...)
	out = proto.AppendBool(append(out, `],"truncated":`...), w.truncated)
	return proto.JSON(append(out, '}'))
}
