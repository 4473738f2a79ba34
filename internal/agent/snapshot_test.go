package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// profiles are the names of the file that a login shell reads.
var profiles = map[string]string{"bash": ".bash_profile", "sh": ".profile", "zsh": ".zprofile"}

// login is a home for login shells of one kind.
type login struct {
	h                 *harness
	name, shell, home string
	n                 int
}

func newLogin(t *testing.T, h *harness, name, profile string) *login {
	t.Helper()
	shell, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	l := &login{h: h, name: name, shell: shell, home: t.TempDir()}
	l.write(profiles[name], profile)
	return l
}

// eachShell runs a test with every kind of shell that is here.
func eachShell(t *testing.T, profile string, f func(t *testing.T, l *login)) {
	t.Helper()
	for name := range profiles {
		t.Run(name, func(t *testing.T) {
			f(t, newLogin(t, ready(t, newServer(t, Options{}), proto.Hello{}), name, profile))
		})
	}
}

func (l *login) write(name, text string) {
	l.h.t.Helper()
	if err := os.WriteFile(filepath.Join(l.home, name), []byte(text), 0o644); err != nil {
		l.h.t.Fatal(err)
	}
}

// runs counts how often the profile has noted in a file that it runs.
func (l *login) runs() int {
	data, _ := os.ReadFile(filepath.Join(l.home, "runs"))
	return strings.Count(string(data), "\n")
}

// params are those of a login shell with a snapshot, and more members.
func (l *login) params(id, script string, more map[string]any) string {
	l.h.t.Helper()
	members := map[string]any{
		"processId": id, "argv": []string{l.shell, "-lc", script}, "cwd": "file:///", "tty": false,
		"env":           map[string]string{"PATH": "/bin:/usr/bin", "HOME": l.home},
		"shellSnapshot": map[string]any{"scopeId": "scope", "shell": map[string]string{"name": l.name, "path": l.shell}},
	}
	maps.Copy(members, more)
	text, err := json.Marshal(members)
	if err != nil {
		l.h.t.Fatal(err)
	}
	return string(text)
}

// run returns what a command prints, both streams in one, and its exit code.
func (l *login) run(script string, more map[string]any) string {
	l.h.t.Helper()
	l.n++
	id := fmt.Sprint("p", l.n)
	l.h.call("process/start", l.params(id, script, more), `ok {"processId":"`+id+`","sandboxType":"none"}`)
	out, code := l.h.untilClosed(id)
	return fmt.Sprint(out, code)
}

func (l *login) expect(script string, more map[string]any, want string) {
	l.h.t.Helper()
	if got := l.run(script, more); got != want {
		l.h.t.Errorf("%s %v\n got %q\nwant %q", script, more, got, want)
	}
}

// asLogin are members with which no snapshot is asked for.
func asLogin() map[string]any { return map[string]any{"shellSnapshot": nil} }

func TestASnapshotStandsInForALoginShell(t *testing.T) {
	const profile = `echo LOUD; echo LOUDER >&2; echo >>~/runs
export X="a  b
'c'\"d" W=1; unset N; PATH=/login:$PATH; set -o noglob
alias ll="echo LL"
`
	eachShell(t, profile, func(t *testing.T, l *login) {
		for range 3 {
			l.expect(`printf %s "$X"; echo "$W"`, nil, "a  b\n'c'\"d1\n0")
			l.expect(`echo $0 $# "$@" *; exit 7`, nil, l.shell+" 0 *\n7")
		}
		if n := l.runs(); n != 1 {
			t.Errorf("the profile has run %d times", n)
		}
		l.expect(`kill -9 $$`, nil, "137")
		l.expect(``, nil, "0")
		// The two streams of a login shell come in any order.
		const aliases = "#\nalias ll | tr -d \\'"
		l.expect(aliases, nil, strings.NewReplacer("LOUD\n", "", "LOUDER\n", "").Replace(l.run(aliases, asLogin())))
		l.expect(`echo "$1" "$2"`, map[string]any{"argv": []string{l.shell, "-lc", `echo $0 "$1" "$2"`, "zero", "one", "t w o"}}, "zero one t w o\n0")
		l.expect(`cat`, map[string]any{"tty": true, "argv": []string{l.shell, "-lc", `[ -t 0 ] && echo tty`}}, "tty\r\n0")
	})
}

// Nothing tells a command that its shell was started in another way.
func TestASnapshotLeavesNoTraces(t *testing.T) {
	eachShell(t, "export X=1", func(t *testing.T, l *login) {
		l.expect(`for d in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$d ] && echo $d; done; true`, nil, "0\n1\n2\n0")
		const environment = `env | grep -v ^_= | sort`
		l.expect(environment, nil, l.run(environment, map[string]any{"shellSnapshot": nil, "env": map[string]string{"PATH": "/bin:/usr/bin", "HOME": l.home}, "argv": []string{l.shell, "-c", "export X=1; " + environment}}))
		for _, script := range []string{"nosuch", "\n\nnosuch", "if", "echo a; )", "cat <<E\nhere\nE", "#c\nnosuch", " exit 3", "echo $-; echo ${X"} {
			l.expect(script, nil, l.run(script, asLogin()))
		}
	})
}

func TestTheRequestsVariablesWin(t *testing.T) {
	const profile = "echo >>~/runs; export X=login PATH=/login:/bin FROM=\"$REQ\"; unset N I"
	eachShell(t, profile, func(t *testing.T, l *login) {
		env := func(pairs ...string) map[string]string {
			m := map[string]string{"HOME": l.home}
			for i := 0; i < len(pairs); i += 2 {
				m[pairs[i]] = pairs[i+1]
			}
			return m
		}
		const show = `echo "$X,$PATH,$N,$REQ,$FROM"`
		l.expect(show, map[string]any{"env": env("X", "req", "PATH", "/req:/bin", "N", "1", "REQ", "a")}, "req,/req:/bin,1,a,a\n0")
		l.expect(show, map[string]any{"env": env("REQ", "b")}, "login,/login:/bin,,b,a\n0")
		l.expect(show, map[string]any{"env": env("X", "")}, ",/login:/bin,,,a\n0")
		l.expect(`echo $CODEX_THREAD_ID,$CODEX_TOOL_CALL_ID`, map[string]any{"metadata": map[string]string{"toolCallId": "call"}}, ",call\n0")
		if n := l.runs(); n != 1 {
			t.Errorf("the profile has run %d times", n)
		}
		policy := map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{}, "set": map[string]string{"X": "policy", "N": "policy", "I": "1"}, "includeOnly": []string{}}
		l.expect(`echo "$X,$N,$I,$PATH"`, map[string]any{"env": env(), "envPolicy": policy}, "policy,policy,1,/login:/bin\n0")
	})
}

// Whatever is unusual about start-up files gives the login shell that was asked
// for, each time.
func TestStartUpFilesWithoutASnapshot(t *testing.T) {
	for profile, want := range map[string]string{
		"exit 3": "3", "echo out; echo err >&2; exit 4": "out\nerr\n4", "kill -9 $$": "137", "exec true": "0",
		"exec echo instead": "instead\n0",
	} {
		eachShell(t, "echo >>~/runs; "+profile, func(t *testing.T, l *login) {
			for range 2 {
				l.expect("echo script", nil, want)
			}
			if n := l.runs(); n != 3 { // one was to take a snapshot
				t.Errorf("the profile has run %d times", n)
			}
		})
	}
	eachShell(t, "set -x", func(t *testing.T, l *login) {
		l.expect(": script", nil, l.run(": script", asLogin()))
	})
}

// Errors in start-up files are none of the command's.
func TestStartUpFilesWithErrors(t *testing.T) {
	eachShell(t, "nosuchcommand; false; read line; export X=1$line; (exit 9)", func(t *testing.T, l *login) {
		l.expect("echo $X $?", map[string]any{"pipeStdin": true}, "1 0\n0")
	})
}

func TestWhichSnapshotsAreShared(t *testing.T) {
	eachShell(t, "echo >>~/runs; export X=1 Y=$PWD", func(t *testing.T, l *login) {
		scope := func(name string) map[string]any {
			return map[string]any{"scopeId": name, "shell": map[string]string{"name": l.name, "path": l.shell}}
		}
		for i, more := range []map[string]any{nil, {"shellSnapshot": scope("other")}, {"cwd": "file:///usr"}} {
			for range 2 {
				l.run("true", more)
			}
			if n := l.runs(); n != i+1 {
				t.Errorf("%v: the profile has run %d times", more, n)
			}
		}
		l.expect("echo $Y", map[string]any{"cwd": "file:///usr"}, "/usr\n0")
		l.h.call("process/start", l.params("x", "true", map[string]any{"cwd": "file:///none"}), "-32603 No such file or directory (os error 2) [spawnNotFound]")
		other := ready(t, l.h.server, proto.Hello{})
		l.h = other
		l.run("true", nil)
		if n := l.runs(); n != 4 {
			t.Errorf("with another session the profile has run %d times", n)
		}
	})
}

// Bash has everything restored, and its rc file read.
func TestASnapshotOfBash(t *testing.T) {
	const profile = `
Y=2; declare -a A=(1 "b c"); declare -A M=([k]="v 1"); declare -ir N=5; IFS=:
f() { cat <<E
hi $1
E
}
g() { [[ $1 == +(a|b) ]] && echo matches; }
export -f f; shopt -s extglob expand_aliases nullglob; set -o pipefail -u; alias ll="echo LL" "q=echo 'it'\''s'"; TERM=strange
export BASH_ENV=~/env
`
	l := newLogin(t, ready(t, newServer(t, Options{}), proto.Hello{}), "bash", profile)
	l.write("env", "echo >>~/runs; E=1")
	for range 2 {
		l.expect(`ll "$Y" "${A[1]}" "${M[k]}" $N "$IFS" $E; f 3; bash -c "f 4"; g ab; q; echo "$BASH_ENV"; shopt login_shell`, nil,
			"LL 2 b c v 1 5 : 1\nhi 3\nhi 4\nmatches\nit's\n"+l.home+"/env\nlogin_shell    \toff\n1")
		l.expect(`shopt -q extglob nullglob && false | true; echo $?; echo $((N + 1)); echo $TERM; echo "$BASH_EXECUTION_STRING" $LINENO; echo $undefined; echo no`,
			map[string]any{"env": map[string]string{"PATH": "/bin:/usr/bin", "HOME": l.home, "TERM": "dumb"}},
			"1\n6\ndumb\n"+`shopt -q extglob nullglob && false | true; echo $?; echo $((N + 1)); echo $TERM; echo "$BASH_EXECUTION_STRING" $LINENO; echo $undefined; echo no 1`+
				"\n"+l.shell+": line 1: undefined: unbound variable\n127")
	}
}

func TestASnapshotReadsTheFilesOfInteractiveShells(t *testing.T) {
	for name, file := range map[string]string{"bash": ".bashrc", "zsh": ".zshrc"} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t, ready(t, newServer(t, Options{}), proto.Hello{}), name, "X=profile")
			l.write(file, "f() { echo f; }; X=$X+rc; case $- in *i*) ;; *) return;; esac; X=interactive")
			l.expect("echo $X; f", nil, "profile+rc\nf\n0")
		})
	}
}

func TestASnapshotIsTheUsers(t *testing.T) {
	testroot.Need(t)
	s := newServer(t, Options{Identity: &process.Identity{UID: 1000, GID: 1000}})
	for _, concurrency := range []int{1, 4} {
		l := newLogin(t, ready(t, s, proto.Hello{Concurrency: concurrency}), "bash", "export WHO=$(id -u)")
		if err := os.Chmod(filepath.Dir(l.home), 0o755); err != nil { // t.TempDir's own
			t.Fatal(err)
		}
		for range 2 {
			l.expect("echo $WHO; id -u; shopt -q login_shell || echo snapshot", nil, "1000\n1000\nsnapshot\n0")
		}
	}
}

// A confined command has its own login shell, inside its confinement.
func TestAConfinedCommandHasNoSnapshot(t *testing.T) {
	testroot.Need(t)
	eachShell(t, "{ echo >>~/runs; } 2>/dev/null; echo LOUD", func(t *testing.T, l *login) {
		for id, entries := range map[string]string{"a": readRoot, "b": readRoot + "," + writeProject} {
			params := l.params(id, "echo script", nil)
			params = params[:len(params)-1] + "," + strings.ReplaceAll(profile(entries), "$D", "/usr") + "}"
			l.h.call("process/start", params, `ok {"processId":"`+id+`","sandboxType":"linuxSeccomp"}`)
			if out, _ := l.h.untilClosed(id); out != "LOUD\nscript\n" {
				t.Errorf("it prints %q", out)
			}
		}
		if n := l.runs(); n != 0 {
			t.Errorf("outside of the confinement the profile has run %d times", n)
		}
	})
}

// Starts that come at once wait for one login shell, and no longer than their
// session lives.
func TestASessionEndsWhileASnapshotIsTaken(t *testing.T) {
	s := newServer(t, Options{})
	l := newLogin(t, ready(t, s, proto.Hello{Concurrency: 4}), "sh", "echo $$ >>~/runs; exec sleep 1000")
	for i := range 3 {
		l.h.send(`{"id":%d,"method":"process/start","params":%s}`, i, l.params(fmt.Sprint(i), "true", nil))
	}
	var pid int
	for deadline := time.Now().Add(patience); pid == 0; time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(filepath.Join(l.home, "runs"))
		if line, _, whole := strings.Cut(string(data), "\n"); whole {
			pid, _ = strconv.Atoi(line)
		}
		if time.Now().After(deadline) {
			t.Fatal("no login shell is started")
		}
	}
	l.h.alive()
	s.Close()
	for deadline := time.Now().Add(patience); unix.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the login shell runs on")
		}
	}
	if n := l.runs(); n != 1 {
		t.Errorf("%d login shells were started", n)
	}
}

// A connection that ends is noticed while a snapshot is taken.
func TestAConnectionEndsWhileASnapshotIsTaken(t *testing.T) {
	g := newGate(t)
	l := newLogin(t, ready(t, newServer(t, Options{}), proto.Hello{}), "sh", ": <"+string(g))
	l.h.send(`{"id":1,"method":"process/start","params":%s}`, l.params("p", "echo $X", nil))
	l.h.send(`{"id":2,"method":"environment/status"}`)
	l.h.leave()
	again := connect(t, l.h.server, proto.Hello{})
	again.initialize(l.h.id)
	g.open(t)
}

// What a command costs that asks for a login shell, with a snapshot and without.
func BenchmarkLoginShell(b *testing.B) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		b.Skip(err)
	}
	home := b.TempDir()
	for name, wish := range map[string]string{
		"login":    "",
		"snapshot": fmt.Sprintf(`,"shellSnapshot":{"scopeId":"s","shell":{"name":"bash","path":%q}}`, shell),
	} {
		b.Run(name, func(b *testing.B) {
			s := New(Options{Cwd: "/", Home: home, Shell: shell})
			defer s.Close()
			l := NewLobby(proto.Hello{Peer: peerName}) // a connection that is driven by hand
			l.c.server = s
			ask := func(text string) {
				if answer, ok := l.Answer(proto.FrameOf([]byte(text))); !ok || strings.Contains(string(answer), `"error"`) {
					b.Fatalf("%s: %s", text, answer)
				}
			}
			ask(`{"id":0,"method":"initialize","params":{"clientName":"b"}}`)
			ask(`{"method":"initialized"}`)
			sess := l.c.session.Load()
			sess.out.Store(nil) // nobody is told
			n := 0
			for b.Loop() {
				n++
				id := strconv.Itoa(n)
				ask(fmt.Sprintf(`{"id":1,"method":"process/start","params":{"processId":%q,"argv":[%q,"-lc","true"],"cwd":"file:///","tty":false,"env":{"PATH":"/bin:/usr/bin","HOME":%q}%s}}`,
					id, shell, home, wish))
				p, _ := sess.find(id)
				p.Read(^uint64(0), 0, false, patience, nil) // until it has closed
			}
		})
	}
}
