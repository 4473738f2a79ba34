package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestMarkersLinger(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var ms markers
		at := filepath.Join(dir, ".git")
		there := func() bool { _, err := os.Lstat(at); return err == nil }
		first, _ := ms.hold(at, true, -1, -1)
		second, _ := ms.hold(at, true, -1, -1)
		if first == nil || second != first || !there() {
			t.Fatalf("%v, %v", first, second)
		}
		ms.release([]*marker{first})
		time.Sleep(2 * linger)
		if !there() {
			t.Fatal("it is gone while it is used")
		}
		ms.release([]*marker{second})
		time.Sleep(linger - 1)
		if !there() {
			t.Fatal("it does not linger")
		}
		again, _ := ms.hold(at, true, -1, -1)
		time.Sleep(linger)
		if again != first || !there() {
			t.Fatal("it is gone while it is used again")
		}
		ms.release([]*marker{again})
		time.Sleep(linger)
		synctest.Wait()
		if there() || len(ms.held) != 0 {
			t.Fatal("it stays")
		}
	})
}

func TestMarkersRemoveNothingElse(t *testing.T) {
	dir := t.TempDir()
	var ms markers
	for name, change := range map[string]func(at string) error{
		"filled":   func(at string) error { return os.WriteFile(filepath.Join(at, "f"), nil, 0o600) },
		"replaced": func(at string) error { return os.Rename(at, at+"-away") },
	} {
		at := filepath.Join(dir, name)
		m, _ := ms.hold(at, true, -1, -1)
		if err := change(at); err != nil {
			t.Fatal(err)
		}
		if name == "replaced" {
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		ms.release([]*marker{m})
		ms.sweep()
		if _, err := os.Lstat(at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := ms.hold(file, true, -1, -1); m != nil || err != nil {
		t.Error("a file that is there is marked")
	}
	if m, err := ms.hold(filepath.Join(dir, "no/such/dir"), true, -1, -1); m != nil || !errors.Is(err, unix.ENOENT) {
		t.Error("a marker is made where there is no directory")
	}
}

func TestMarkersOfAServerThatIsGone(t *testing.T) {
	dir := t.TempDir()
	var ms markers
	for name, test := range map[string]struct {
		owner string
		in    bool // something is in it
		taken bool
	}{
		"own":      {owner: self()},
		"earlier":  {owner: fmt.Sprintf("%d earlier", os.Getpid()), taken: true},
		"gone":     {owner: "999999999 x", taken: true},
		"filled":   {owner: "999999999 x", in: true},
		"living":   {owner: "1 x"},
		"nonsense": {owner: "x"},
		"zero":     {owner: "0 x"},
		"nobody's": {},
	} {
		for _, kind := range []string{"dir", "file"} {
			at := filepath.Join(dir, name+"-"+kind)
			err := os.Mkdir(at, 0o755)
			if kind == "file" {
				_ = os.Remove(at)
				err = os.WriteFile(at, nil, 0o600)
			}
			if err == nil && test.owner != "" {
				err = unix.Setxattr(at, ownerAttr, []byte(test.owner), 0)
			}
			if err == nil && test.in {
				if err = os.WriteFile(filepath.Join(at, "f"), nil, 0o600); kind == "file" {
					err = os.WriteFile(at, []byte("x"), 0o600)
				}
			}
			if errors.Is(err, unix.ENOTSUP) {
				t.Skip("files have no attributes here")
			}
			if err != nil {
				t.Fatal(err)
			}
			m, _ := ms.hold(at, kind == "dir", -1, -1)
			if (m != nil) != test.taken {
				t.Errorf("%s: taken over: %t", at, m != nil)
			}
			if m != nil {
				ms.release([]*marker{m})
			}
			ms.sweep()
			if _, err := os.Lstat(at); (err == nil) == test.taken {
				t.Errorf("%s afterwards: %v", at, err)
			}
		}
	}
}
