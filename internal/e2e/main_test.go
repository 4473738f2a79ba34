package e2e

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bin is the built program; busyboxTar and staticTar are root file systems.
var bin, busyboxTar, staticTar string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "exec-server-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	if !shared.end() {
		code = 1
	}
	return code
}

func prepare(dir string) error {
	if err := os.Chmod(dir, 0o711); err != nil { // user namespaces look through it
		return err
	}
	bin = filepath.Join(dir, "exec-server")
	if out, err := exec.Command("../../scripts/build", bin).CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/build: %w\n%s", err, out)
	}
	busyboxTar, staticTar = filepath.Join(dir, "busybox.tar"), filepath.Join(dir, "static.tar")
	busybox, err := os.ReadFile("/bin/busybox")
	if os.IsNotExist(err) && os.Geteuid() != 0 && os.Getenv("CI") != "true" {
		return nil // only the tests that need root need it
	} else if err != nil {
		return fmt.Errorf("the images of these tests are made from busybox-static: %w", err)
	}
	links := map[string]string{}
	for _, name := range []string{"sh", "cat", "echo", "id", "ls", "sleep", "true", "ps", "env", "pwd", "hostname", "stat", "head", "wc", "setsid", "mount", "ip", "nc", "test", "stty", "touch", "dd", "rm", "mkdir", "seq", "kill", "printf", "ln", "mv", "sha256sum", "chmod", "grep", "readlink"} {
		links["bin/"+name] = "busybox"
	}
	passwd := "root:x:0:0:root:/root:/bin/sh\nworker:x:1234:1234::/home/worker:/bin/sh\n"
	group := "root:x:0:\nworker:x:1234:\nextra:x:77:worker\n"
	programs := map[string]string{"bin/busybox": string(busybox)}
	for _, name := range []string{"visit", "probe", "escape"} {
		if programs["bin/"+name], err = buildProgram(dir, name); err != nil {
			return err
		}
	}
	err = writeTar(busyboxTar, programs, map[string]string{"etc/passwd": passwd, "etc/group": group}, links)
	if err != nil {
		return err
	}
	return writeTar(staticTar, map[string]string{"busybox": string(busybox)}, nil, nil)
}

// buildProgram builds a program of testdata, which needs nothing of an image, and
// returns it: the busybox that Debian has cannot look up names without shared libraries.
func buildProgram(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build testdata/%s: %w\n%s", name, err, out)
	}
	program, err := os.ReadFile(path)
	return string(program), err
}

func writeTar(path string, programs, files, links map[string]string) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add := func(h *tar.Header, data string) error {
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write([]byte(data))
		return err
	}
	for name, data := range programs {
		if err := add(&tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg}, data); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := add(&tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg}, data); err != nil {
			return err
		}
	}
	for name, target := range links {
		if err := add(&tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}, ""); err != nil {
			return err
		}
	}
	if err := add(&tar.Header{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir}, ""); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}
