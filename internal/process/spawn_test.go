package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestSpawnFailures(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "echo x", 0o644)
	noFormat := file("noformat", "echo x", 0o755)
	noInterpreter := file("nointerpreter", "#!/nonexistent/sh\n", 0o755)
	const enoent = "No such file or directory (os error 2)"
	const eacces = "Permission denied (os error 13)"
	for _, test := range []struct {
		name string
		edit func(*Spec)
		text string
		kind string
		tty  string // the text on a terminal if it differs; "-" if the start succeeds there, "?" if it may
	}{
		{"missing program", func(s *Spec) { s.Argv = []string{"no-such-program"} }, enoent, kindNotFound, ""},
		{"missing path", func(s *Spec) { s.Argv = []string{"/no/such"} }, enoent, kindNotFound, ""},
		{"missing cwd", func(s *Spec) { s.Cwd = "/no/such" }, enoent, kindNotFound, "-"},
		{"not executable", func(s *Spec) { s.Argv = []string{plain} }, eacces, kindDenied, ""},
		{"a directory", func(s *Spec) { s.Argv = []string{dir} }, eacces, kindDenied, ""},
		{"cwd is a file", func(s *Spec) { s.Cwd = plain }, "Not a directory (os error 20)", kindFailed, "-"},
		{"NUL in an argument", func(s *Spec) { s.Argv = []string{"sh", "a\x00b"} }, "nul byte found in provided data", kindFailed, ""},
		{"NUL in the program", func(s *Spec) { s.Argv = []string{"s\x00h"} }, "nul byte found in provided data", kindFailed, ""},
		{"NUL in arg0", func(s *Spec) { s.Arg0, s.HasArg0 = "\x00", true }, "nul byte found in provided data", kindFailed, ""},
		{"NUL in a value", func(s *Spec) { s.Env["A"] = "\x00" }, "data provided contains a nul byte", kindFailed, ""},
		{"NUL in a name", func(s *Spec) { s.Env["A\x00"] = "" }, "data provided contains a nul byte", kindFailed, ""},
		{"no program", func(s *Spec) { s.Argv = []string{""} }, "missing program for pipe spawn", kindFailed, "missing program for PTY spawn"},
		{"no format", func(s *Spec) { s.Argv = []string{noFormat} }, "Exec format error (os error 8)", kindFailed, "?"},
		{"no interpreter", func(s *Spec) { s.Argv = []string{noInterpreter} }, enoent, kindNotFound, ""},
		{"too long", func(s *Spec) { s.Argv = []string{"sh", "-c", ":", strings.Repeat("x", 200<<10)} },
			"Argument list too long (os error 7): one argument or variable may have 131071 bytes, all together what ARG_MAX says", kindFailed, ""},
	} {
		for _, tty := range []bool{false, true} {
			spec := sh("exit 0")
			spec.TTY, spec.PipeStdin, spec.Home = tty, !tty, "/"
			test.edit(&spec)
			want := test.text
			if tty && test.tty == "?" {
				continue
			} else if tty && test.tty == "-" {
				start(t, spec).wait(t)
				continue
			} else if tty && test.tty != "" {
				want = test.tty
			}
			_, err := Start(spec, Options{})
			e, ok := errors.AsType[*proto.Error](err)
			if !ok || e.Code != proto.CodeInternal || e.Message != want || e.Kind != test.kind {
				t.Errorf("%s, tty %v: %+v, want %q %s", test.name, tty, err, want, test.kind)
			}
		}
	}
}

func TestALongArgumentFits(t *testing.T) {
	spec := sh(`echo ${#1}`)
	spec.Argv = append(spec.Argv, "sh", strings.Repeat("x", 127<<10))
	if got := prints(t, spec); got != "130048\n" {
		t.Errorf("got %s", got)
	}
}

func TestACommandStartsAfresh(t *testing.T) {
	// A descriptor that the server itself was given, and that it must not pass on.
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	shedInherited()
	dir := t.TempDir()
	for _, tty := range []bool{false, true} {
		spec := sh(`
			cat /proc/self/status | grep -E '^(SigBlk|SigIgn|SigCgt):' | tr -d '\t0\r'
			set -- $(cat /proc/$$/stat); echo leads $(( $1 == $5 )) $(( $1 == $6 ))
			ls -1 /proc/$$/fd
			pwd; echo $0`)
		spec.Argv = []string{"/bin/sh", "-c", spec.Argv[2], "name"}
		spec.Cwd, spec.TTY = dir, tty
		got := strings.ReplaceAll(prints(t, spec), "\r", "")
		want := "SigBlk:\nSigIgn:\nSigCgt:\nleads 1 1\n0\n1\n2\n" + dir + "\nname\n"
		if got != want {
			t.Errorf("tty %v:\n got %q\nwant %q", tty, got, want)
		}
	}
}

func TestArg0IsWhatTheProgramSees(t *testing.T) {
	for _, arg0 := range []string{"", "other", "-sh"} {
		spec := Spec{ID: "p", Argv: []string{"/bin/cat", "/proc/self/cmdline"}, Arg0: arg0, HasArg0: true, Cwd: "/", Env: map[string]string{}}
		if got, want := prints(t, spec), arg0+"\x00/proc/self/cmdline\x00"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
