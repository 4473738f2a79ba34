package fs

import (
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// copyBuffer is how many bytes are copied at a time.
const copyBuffer = 256 << 10

// copyFile copies contents and mode. Set-id bits are not kept: the copy may
// have another owner, whom they would give away. Onto itself, by whatever name,
// it does nothing.
func copyFile(src, dst string) error {
	from, st, err := pathPlace(src, false).open(unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	mode := st.Mode & 0o777
	to, old, err := pathPlace(dst, true).open(unix.O_WRONLY|unix.O_CREAT, mode)
	if err != nil {
		return err
	}
	if st.Dev == old.Dev && st.Ino == old.Ino {
		return to.Close()
	}
	// The mode comes first, so that what is private is so from the first byte.
	if old.Mode&0o7777 != mode {
		err = to.Chmod(os.FileMode(mode))
	}
	if err == nil && old.Size > 0 {
		err = to.Truncate(0)
	}
	if err == nil {
		err = copyContents(to, from, st.Size)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}

// copyContents copies a file of size bytes into an empty one, holes as holes.
func copyContents(dst, src *os.File, size int64) error {
	if size == 0 { // empty, or in /proc
		n, err := copyRange(dst, src, 0, maxFile+1)
		if err == nil && n > maxFile {
			err = errTooLarge()
		}
		return err
	}
	for off := int64(0); off < size; {
		start, end := nextData(src, off, size)
		if start == size {
			return dst.Truncate(size)
		}
		n, err := copyRange(dst, src, start, end-start)
		if err != nil || n < end-start { // short: it shrank
			return err
		}
		off = end
	}
	return nil
}

// nextData returns where the next data at or after off starts and ends; start
// is size if only a hole is left.
func nextData(file *os.File, off, size int64) (start, end int64) {
	start, err := file.Seek(off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err != nil { // the file system does not tell
		return off, size
	}
	end, err = file.Seek(start, unix.SEEK_HOLE)
	if err != nil || end <= start {
		end = math.MaxInt64
	}
	return min(start, size), min(end, size)
}

func copyRange(dst, src *os.File, off, n int64) (int64, error) {
	buf := make([]byte, min(n, copyBuffer))
	return io.CopyBuffer(io.NewOffsetWriter(dst, off), io.NewSectionReader(src, off, n), buf)
}
