package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// bundles are where images have the certificates that their programs trust, as
// paths below the root: of Debian, Red Hat, Alpine and SUSE. The first is made
// where there is none.
var bundles = []string{
	"etc/ssl/certs/ca-certificates.crt",
	"etc/pki/tls/certs/ca-bundle.crt",
	"etc/ssl/cert.pem",
	"etc/ssl/ca-bundle.pem",
}

// maxBundle bounds a bundle in bytes. That of Mozilla has a quarter of a million.
const maxBundle = 16 << 20

// trustCA has the image's programs trust the certificates in a file: it adds them
// to all bundles below root, and makes one more file with those that were in the
// first of them and the new ones. The variables that name that file go if the image
// has no bundle: programs with one inside of them would trust nothing else any more.
// Without certificates it does nothing. Nothing of the image runs yet.
func trustCA(root, certificates, bundle string) error {
	if certificates == "" {
		return nil
	}
	added, err := os.ReadFile(certificates)
	if err != nil {
		return fmt.Errorf("certificates of the environment: %w", err)
	}
	top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", root, err)
	}
	defer unix.Close(top)
	all, err := addToBundles(top, append([]byte("\n"), added...))
	if err != nil {
		return err
	}
	if all == nil {
		if err := makeBundle(top, bundles[0], added); err != nil {
			return fmt.Errorf("make /%s: %w", bundles[0], err)
		}
		for _, pair := range os.Environ() {
			if name, value, _ := strings.Cut(pair, "="); value == bundle {
				_ = os.Unsetenv(name) // it fails for names that cannot be set
			}
		}
		return nil
	}
	if err := os.WriteFile(bundle, all, 0o444); err != nil {
		return fmt.Errorf("certificates of the environment: %w", err)
	}
	return nil
}

// addToBundles returns what the first bundle has then; nil if there is none.
func addToBundles(top int, added []byte) (first []byte, err error) {
	for _, name := range bundles {
		f, err := openBelow(top, name, unix.O_RDWR|unix.O_APPEND|unix.O_NONBLOCK)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var have []byte
		if err == nil {
			have, err = addTo(f, added)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("add to the certificates in /%s: %w", name, err)
		}
		if first == nil {
			first = have
		}
	}
	return first, nil
}

// addTo returns what a bundle has then. It may be reached by two names.
func addTo(f *os.File, added []byte) ([]byte, error) {
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no file"), err)
	}
	have, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err != nil {
		return nil, err
	}
	if len(have) > maxBundle {
		return nil, fmt.Errorf("it has over %d bytes", maxBundle)
	}
	if bytes.Contains(have, added) {
		return have, nil
	}
	_, err = f.Write(added)
	return append(have, added...), err
}

// makeBundle makes a file with what is to be trusted, and its directories.
func makeBundle(top int, name string, text []byte) error {
	if dir := path.Dir(name); dir != "." {
		if d, err := openBelow(top, dir, unix.O_PATH|unix.O_DIRECTORY); err == nil {
			_ = d.Close()
		} else if err := makeDir(top, dir); err != nil {
			return err
		}
	}
	f, err := openBelow(top, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// makeDir makes a directory below top, and those above it that are missing.
func makeDir(top int, name string) error {
	above, err := openBelow(top, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		if err = makeDir(top, path.Dir(name)); err == nil {
			above, err = openBelow(top, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
		}
	}
	if err != nil {
		return err
	}
	defer above.Close()
	return unix.Mkdirat(int(above.Fd()), path.Base(name), 0o755)
}

// openBelow opens a path below top. Its links count as if top were the root, and
// lead to no other file system: not into a volume.
func openBelow(top int, name string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	if flags&unix.O_CREAT != 0 {
		how.Mode = 0o644
	}
	fd, err := unix.Openat2(top, name, &how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
