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
	uri := w.root.Below(path)
	if err := w.count(len(uri)); err != nil {
		return err
	}
	if w.visitor != nil {
		w.visitor.Found(uri, path, kind == "directory")
		return nil
	}
	add(&w.entries, uri, "kind", kind)
	return nil
}

// addError adds what could not be looked at to the result.
func (w *walker) addError(path string, err error) error {
	uri, message := w.root.Below(path), proto.WireError(err).Message
	if err := w.count(len(uri) + len(message)); err != nil {
		return err
	}
	if w.visitor != nil {
		w.visitor.Failed(uri, message)
		return nil
	}
	add(&w.errors, uri, "message", message)
	return nil
}

// count makes room in the result for an item of so many bytes and 64 for the
// rest.
func (w *walker) count(size int) error {
	if w.size += size + 64; w.size > maxWalkSize {
		return errCut
	}
	return nil
}

// add appends an item of two members to a list.
func add(list *[]byte, uri, member, text string) {
	if len(*list) > 0 {
		*list = append(*list, ',')
	}
	*list = proto.AppendString(append(*list, `{"path":`...), uri)
	*list = append(proto.AppendString(append(*list, ','), member), ':')
	*list = append(proto.AppendString(*list, text), '}')
}

func (w *walker) result() proto.Result {
	out := append([]byte(`{"entries":[`), w.entries...)
	out = append(append(out, `],"errors":[`...), w.errors...)
	out = proto.AppendBool(append(out, `],"truncated":`...), w.truncated)
	return proto.JSON(append(out, '}'))
}
