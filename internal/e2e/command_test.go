package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func shell(script string) (stdout, stderr string, code int) {
	cmd := exec.Command("/bin/sh", "-c", script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestRun(t *testing.T) {
	r := newRoot(t, "")
	cases := []struct {
		name, stdin string
		args        []string
		out, err    string
		code        int
	}{
		{"streams", "", []string{"--", "sh", "-c", "echo out; echo err >&2"}, "out\n", "err\n", 0},
		{"exit code", "", []string{"--", "sh", "-c", "exit 7"}, "", "", 7},
		{"signal", "", []string{"--", "sh", "-c", "kill -9 $$"}, "", "", 137},
		{"standard input and its end", "a\nb\n", []string{"--", "wc", "-l"}, "2\n", "", 0},
		{"no dashes", "", []string{"echo", "-n", "x"}, "x", "", 0},
		{"variable", "", []string{"-e", "A=b c,d=e", "--", "sh", "-c", "echo $A"}, "b c,d=e\n", "", 0},
		{"signal on a terminal", "", []string{"--tty", "yes", "--", "sh", "-c", "kill -9 $$"}, "", "", 137},
		{"relative directory", "", []string{"--cwd", "x", "--", "true"}, "", "--cwd \"x\" is not absolute", 2},
		{"file for a directory", "", []string{"--cwd", "/etc/passwd", "--", "true"}, "", "/etc/passwd is not a directory", 1},
		{"working directory", "", []string{"--cwd", "/tmp", "--", "pwd"}, "/tmp\n", "", 0},
		{"user", "", []string{"--user", "worker", "--", "id", "-u"}, "1234\n", "", 0},
		{"missing program", "", []string{"--", "nope"}, "", "exec-server: nope: No such file or directory (os error 2)\n", 127},
		{"not executable", "", []string{"--", "/etc/passwd"}, "", "exec-server: /etc/passwd: Permission denied (os error 13)\n", 126},
		{"terminal", "", []string{"--tty", "yes", "--", "sh", "-c", "test -t 0 && test -t 1 && echo yes"}, "yes\r\n", "", 0},
		{"unknown user", "", []string{"--user", "ghost", "--", "true"}, "", `user "ghost" is not in the image's /etc/passwd`, 1},
		{"unknown image", "", []string{"--image", "test/none:1", "--", "true"}, "", "is not in the store", 1},
		{"unknown profile", "", []string{"--profile", "none", "--", "true"}, "", `profile "none" is not in the configuration`, 1},
	}
	for _, daemon := range []bool{false, true} {
		if daemon { // the daemon holds the root now, and is asked
			r.serve()
		}
		for _, tt := range cases {
			t.Run(fmt.Sprintf("daemon %v/%s", daemon, tt.name), func(t *testing.T) {
				out, stderr, code := cli(t, tt.stdin, append([]string{"--config", r.config, "run"}, tt.args...)...)
				if out != tt.out || code != tt.code || !strings.Contains(stderr, tt.err) || tt.err == "" && stderr != "" {
					t.Errorf("printed %q, %q, exit %d", out, stderr, code)
				}
				if strings.Count(stderr, "\n") > 1 {
					t.Errorf("more than one line of complaint: %q", stderr)
				}
			})
		}
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unknown := write("unknown.toml", "version = 1\n[listen]\nurl = \"stdio\"\ncolour = 3\n")
	broken := write("broken.toml", "version = 1\nroot = \n")
	for _, tt := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"port in use", []string{"--runtime", "host", "--listen", "ws://" + taken.Addr().String()}, "address already in use", 1},
		{"unknown key", []string{"--config", unknown}, "unknown.toml:4:1: listen.colour: there is no such key", 1},
		{"bad syntax", []string{"--config", broken}, "broken.toml:2:", 1},
		{"missing file", []string{"--config", filepath.Join(dir, "none.toml")}, "no such file", 1},
		{"unknown flag", []string{"--colour"}, "unknown flag --colour", 2},
		{"bad listen", []string{"--listen", "http://x"}, "unsupported --listen URL `http://x`; expected `ws://IP:PORT` or `stdio`", 1},
		{"bad environment", []string{"--environment-id", "../x"}, `environment id "../x"`, 1},
		{"bad runtime", []string{"--runtime", "docker"}, "--runtime must be one of", 2},
		{"zero concurrency", []string{"--concurrent-requests", "0"}, "at least 1", 2},
		{"run without command", []string{"run"}, "expected", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, stderr, code := cli(t, "", tt.args...)
			if code != tt.code || out != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, printed %q, %q", code, out, stderr)
			}
		})
	}
}

func TestErrorsOfTheContainerRuntimeLeaveNothing(t *testing.T) {
	r := newRoot(t, "")
	missing := newRoot(t, "[profile.default]\nimage = \"test/none:1\"\n")
	r.serve()
	full := filepath.Join(r.dir, "full")
	if _, stderr, code := shell("mkdir " + full + " && mount -t tmpfs -o size=20m full " + full); code != 0 {
		t.Fatal(stderr)
	}
	defer func() { _, _, _ = shell("umount " + full) }()
	old := filepath.Join(r.dir, "old")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old+"/runc", []byte("#!/bin/sh\necho runc version 1.0.0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, command, want string }{
		{"not root", "setpriv --reuid 65534 --regid 65534 --clear-groups " + bin, "root"},
		{"root in use", bin + " --config " + r.config, "another exec-server runs with root"},
		{"image missing", bin + " --config " + missing.config, "test/none:1"},
		{"image missing where no store is", bin + " run --root " + r.dir + "/none -- true", "default image is not in the store of " + r.dir + "/none"},
		{"runc missing", "PATH=/nowhere " + bin + " --root " + r.dir + "/r2", "runc"},
		{"runc too old", "PATH=" + old + ":/nowhere " + bin + " --root " + r.dir + "/r2", "1.0.0"},
		{"disk full", bin + " --root " + full, full},
		{"no containerd there", bin + " --root " + r.dir + "/r3 --containerd-address /nowhere.sock", "/nowhere.sock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, stderr, code := shell(tt.command)
			if code != 1 || out != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, printed %q, %q", code, out, stderr)
			}
		})
	}
}

func TestHostRuntimeTakesTheStockFlags(t *testing.T) {
	s := serve(t, "exec-server", "--runtime", "host", "--listen", "ws://127.0.0.1:0", "--environment-id", "x", "--concurrent-requests", "4")
	if got := s.connect("/", "").sh("echo $((40 + 2))"); got != "42" {
		t.Errorf("the shell says %q", got)
	}
	if code := s.stop(15); code != 0 {
		t.Errorf("SIGTERM ends the server with %d", code)
	}
}

func TestConfigPrintsWhatItReads(t *testing.T) {
	out, _, code := cli(t, "", "config")
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil || code != 0 {
		t.Fatal(err, code)
	}
	s := serve(t, "--config", path, "--runtime", "host")
	s.stop(15)
}
