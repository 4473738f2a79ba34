package discover

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/fs"
	"github.com/exec-server/exec-server/internal/proto"
)

// file is a file of the result.
type file struct{ uri, contents string }

// read reads a file into the result. It is nil if there is none of that name,
// and, with a warning, if it cannot be taken.
func (s *scan) read(at place) *file {
	st, err := stat(at.path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		s.warn("failed to inspect capability file " + at.uri + ": " + proto.WireError(err).Message)
		return nil
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil
	}
	data, err := fs.ReadUpTo(at.path, maxFile+1)
	size := int64(len(data))
	switch {
	case err != nil:
		s.warn("failed to read capability file " + at.uri + ": " + proto.WireError(err).Message)
	case size > maxFile:
		s.warn(fmt.Sprintf("capability file %s exceeds the %d-byte limit", at.uri, maxFile))
	case s.size+size > maxRoot:
		s.warn(fmt.Sprintf("capability root bundle exceeds the %d-byte limit", maxRoot))
	case s.size+size > s.limit:
		s.warn(fmt.Sprintf("capability roots exceed the %d-byte limit together", maxAll))
	case !utf8.Valid(data):
		s.warn("capability file " + at.uri + " is not UTF-8: " + utf8Fault(data))
	default:
		s.size += size
		return &file{at.uri, string(data)}
	}
	return nil
}

// utf8Fault says what is wrong with the first bytes that are not UTF-8.
func utf8Fault(data []byte) string {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	size, whole := badSequence(data[at:])
	if !whole {
		return fmt.Sprintf("incomplete utf-8 byte sequence from index %d", at)
	}
	return fmt.Sprintf("invalid utf-8 sequence of %d bytes from index %d", size, at)
}

// badSequence returns how many of the first bytes could begin a character. It is
// not whole if only the end of the data is in the way.
func badSequence(data []byte) (size int, whole bool) {
	for n := 1; n <= min(utf8.UTFMax, len(data)); n++ {
		if utf8.FullRune(data[:n]) { // that is, it cannot become a character any more
			return max(n-1, 1), true
		}
	}
	return len(data), false
}
