package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

func (h *harness) readFile(uri string) (string, error) {
	v, err := h.call("fs/readFile", map[string]any{"path": uri})
	if err != nil {
		return "", err
	}
	data, err := proto.DecodeBase64(v.Get("dataBase64").Bytes())
	return string(data), err
}

// Links that the sandbox has made lead to the container's own files and never
// to the host's, whatever they say and whenever they are swapped in.
func TestTrap60PlantedLinks(t *testing.T) {
	r := newRoot(t, "")
	h := r.serve().connect("/", "")
	// A directory that is on the host and in the container under the same name,
	// with another file in each.
	outside := filepath.Join(r.dir, "outside")
	if err := os.Mkdir(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(outside, "f")
	if err := os.WriteFile(victim, []byte("host"), 0o666); err != nil {
		t.Fatal(err)
	}
	h.sh("mkdir -p " + outside + " && printf container > " + victim + "; cd /workspace; ln -s / root; ln -s /proc/1/root proc; ln -s " +
		strings.Repeat("../", 40) + outside[1:] + " up; mkdir real; printf real > real/f; ln -s " + outside + " swap")
	passwd := h.sh("cat /etc/passwd")
	for _, test := range []struct{ path, want string }{
		{"root/etc/passwd", passwd + "\n"}, {"root" + victim, "container"}, {"up/f", "container"}, {"swap/f", "container"},
		{"proc/etc/passwd", passwd + "\n"}, {"proc" + victim, "container"},
	} {
		got, err := h.readFile("file:///workspace/" + test.path)
		if got != test.want || err != nil {
			t.Errorf("%s holds %q, %v", test.path, got, err)
		}
	}

	// The two are exchanged all the time, from outside, which is faster than what
	// anybody inside could do.
	workspace := filepath.Join(r.dir, "root/environments/default/workspace")
	var stop atomic.Bool
	swapped := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			if err := unix.Renameat2(unix.AT_FDCWD, workspace+"/real", unix.AT_FDCWD, workspace+"/swap", unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				break
			}
		}
		swapped <- n
	}()
	seen := map[string]int{}
	for i, end := 0, time.Now().Add(time.Duration(scale(t, 3, 60))*time.Second); time.Now().Before(end); i++ {
		got, err := h.readFile("file:///workspace/swap/f")
		if err != nil {
			got = refused(err)
		}
		seen[got]++
		for _, request := range []struct {
			method string
			params map[string]any
		}{
			// The link may be passed through here, to a file of the container.
			{"fs/getMetadata", map[string]any{"path": "file:///workspace/swap/f"}},
			{"fs/canonicalize", map[string]any{"path": "file:///workspace/swap/f"}},
			{"fs/walk", map[string]any{"path": "file:///workspace/swap", "options": map[string]any{"maxDepth": 3, "maxDirectories": 10, "maxEntries": 100, "followDirectorySymlinks": true}}},
			{"fs/copy", map[string]any{"sourcePath": "file:///workspace/real", "destinationPath": fmt.Sprintf("file:///workspace/copy%d", i%2), "recursive": true}},
			{"fs/writeFile", map[string]any{"path": "file:///workspace/swap/new", "dataBase64": base64Of("x")}},
			{"fs/createDirectory", map[string]any{"path": "file:///workspace/swap/d/e"}},
			{"fs/remove", map[string]any{"path": "file:///workspace/swap/d"}},
			{"fs/remove", map[string]any{"path": fmt.Sprintf("file:///workspace/copy%d", i%2)}},
			// And not here.
			{"fs/writeFile", map[string]any{"path": "file:///workspace/swap/f", "dataBase64": base64Of("real"), "followSymlinks": false}},
		} {
			_, _ = h.call(request.method, request.params)
		}
		v, err := h.call("fs/readFile", map[string]any{"path": "file:///workspace/swap/f", "followSymlinks": false})
		if got := v.Get("dataBase64").Str(); err == nil && got != base64Of("real") && got != "" { // empty while it is being written
			t.Errorf("without following links it is %q", got)
		}
	}
	stop.Store(true)
	t.Logf("%d swaps; read: %v", <-swapped, seen)
	for got := range seen {
		if !slices.Contains([]string{"real", "container", ""}, got) && !strings.Contains(got, "os error") {
			t.Errorf("read: %q", got)
		}
	}
	if seen["real"] == 0 || seen["container"] == 0 {
		t.Error("no race was run")
	}
	names, err := os.ReadDir(outside)
	if data, rerr := os.ReadFile(victim); err != nil || rerr != nil || string(data) != "host" || len(names) != 1 {
		t.Errorf("the host's directory has %v, its file %q, %v, %v", names, data, err, rerr)
	}
	if got := h.sh("cat " + victim); got != "container" {
		t.Errorf("a write that follows no links has followed one: %q", got)
	}
}

// What is mounted, and whose it is made, does not depend on links in a
// workspace.
func TestTrap61HostileWorkspace(t *testing.T) {
	r := newRoot(t, "")
	victim := filepath.Join(r.dir, "victim")
	if err := os.WriteFile(victim, []byte("host"), 0o600); err != nil {
		t.Fatal(err)
	}
	mounts := func(h *harness) string { // less the numbers and the paths of this container alone
		return h.sh("while read a b c root at o; do echo $at ${root##*/snapshots/*}; done </proc/self/mountinfo")
	}
	s := r.serve()
	h := s.connect("/", "")
	before := mounts(h)
	h.sh("cd /workspace; ln -s / root; ln -s " + victim + " f; ln -s /etc/passwd passwd; ln -s . workspace; ln -s /run run; " +
		"ln -sf " + victim + " /etc/hostname 2>/dev/null; ln -s " + victim + " /etc/new")
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		s.stop(end)
		s = r.serve()
		h = s.connect("/", "")
		if after := mounts(h); after != before {
			t.Errorf("after %v these are mounted:\n%s\nand before these:\n%s", end, after, before)
		}
		if got := h.sh("readlink /workspace/f 2>/dev/null || ls -l /workspace/f"); !strings.Contains(got, victim) {
			t.Errorf("the workspace's link is %q", got)
		}
	}
	st, err := os.Stat(victim)
	if err != nil || st.Mode() != 0o600 || st.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the host's file: %v, %v", st, err)
	}
}

// Each error of the system is told from the others. That a name is a link is
// told where it leads somewhere: for a dangling one the protocol says not found.
func TestTrap62ErrorsAreTold(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		h.sh("cd " + p.dir + "; mkdir -p d/e; echo x > f; ln -s f link; ln -s none dangling; ln -s loop loop")
		no := map[string]any{"followSymlinks": false}
		for _, test := range []struct {
			method, path string
			more         map[string]any
			want         string
		}{
			{"readFile", "none", nil, "-32004 No such file or directory (os error 2)"},
			{"readFile", "f/x", nil, "-32603 Not a directory (os error 20)"},
			{"readFile", "loop", nil, "-32603 Symbolic link loop (os error 40)"},
			{"readFile", "dangling", nil, "-32004 No such file or directory (os error 2)"},
			{"readFile", "d", nil, "-32600 path `" + p.dir + "/d` is not a file"},
			{"writeFile", "d", map[string]any{"dataBase64": ""}, "-32603 Is a directory (os error 21)"},
			{"writeFile", "none/x", map[string]any{"dataBase64": ""}, "-32004 No such file or directory (os error 2)"},
			{"createDirectory", "f", nil, "-32603 File exists (os error 17)"},
			{"createDirectory", "d", map[string]any{"recursive": false}, "-32603 File exists (os error 17)"},
			{"remove", "d", map[string]any{"recursive": false}, "-32603 Directory not empty (os error 39)"},
			{"remove", "none", map[string]any{"force": false}, "-32004 No such file or directory (os error 2)"},
			{"readDirectory", "f", nil, "-32603 Not a directory (os error 20)"},
			{"getMetadata", "dangling", nil, "-32004 No such file or directory (os error 2)"},
			{"getMetadata", "link", no, "-32600 path contains a symbolic link"},
			{"readFile", "link", no, "-32603 Symbolic link loop (os error 40)"},
			{"readFile", strings.Repeat("x", 256), nil, "-32603 "},
		} {
			params := map[string]any{"path": p.uri(test.path)}
			for name, value := range test.more {
				params[name] = value
			}
			_, err := h.call("fs/"+test.method, params)
			if got := refused(err); got != test.want && !(strings.HasSuffix(test.want, " ") && strings.HasPrefix(got, test.want)) {
				t.Errorf("%s %s: %s, want %s", test.method, test.path, got, test.want)
			}
		}
		if v := h.must("fs/getMetadata", map[string]any{"path": p.uri("link")}); v.Get("isSymlink").Kind != proto.True || v.Get("isFile").Kind != proto.True {
			t.Error("a link to a file is not told as both")
		}
		if p.root == nil {
			return
		}
		if _, err := h.call("fs/writeFile", map[string]any{"path": "file:///run/exec-server/agent", "dataBase64": ""}); refused(err) != "-32603 Read-only file system (os error 30)" {
			t.Errorf("a read-only file: %s", refused(err))
		}
		if _, err := h.readFile("file:///proc/sys/kernel/cad_pid"); refused(err) != "-32600 Permission denied (os error 13)" {
			t.Errorf("a file that may not be read: %s", refused(err))
		}
	})
}

// Writing is in place, as by the protocol: the file stays the same one. A disk
// that is full is an error, and what fitted is there.
func TestTrap63WritingInPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		state := "cd " + p.dir + "; stat -c '%i %a %h' f"
		h.sh("cd " + p.dir + "; printf old-and-longer > f; chmod 755 f; ln f other")
		before := h.sh(state)
		h.must("fs/writeFile", map[string]any{"path": p.uri("f"), "dataBase64": base64Of("new")})
		if after := h.sh(state); after != before || !strings.HasSuffix(after, " 755 2") {
			t.Errorf("inode, mode and links were %s and are %s", before, after)
		}
		if got, err := h.readFile(p.uri("other")); got != "new" || err != nil {
			t.Errorf("by its other name it holds %q, %v", got, err)
		}
		if p.root == nil {
			return
		}
		data := bytes.Repeat([]byte("0123456789abcdef"), 6<<20/16)
		_, err := h.call("fs/writeFile", map[string]any{"path": "file:///dev/shm/f", "dataBase64": base64Of(string(data))})
		if got := strings.ToLower(refused(err)); got != "-32603 no space left on device (os error 28)" {
			t.Errorf("6 MiB into 4: %s", got)
		}
		got, err := h.readFile("file:///dev/shm/f")
		if err != nil || len(got) == 0 || !bytes.HasPrefix(data, []byte(got)) {
			t.Errorf("what fitted is %d bytes, %v", len(got), err)
		}
		h.must("fs/remove", map[string]any{"path": "file:///dev/shm/f"})
	})
}

// Names are bytes. Only fs/readDirectory gives them as text, by the protocol, in
// which bytes that are not UTF-8 cannot be told.
func TestTrap65OddNames(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for _, name := range []string{
			"new\nline", "\xff\xfe invalid", "-rf", "--", strings.Repeat("x", 255), strings.Repeat("é", 127), "🙂", "%2F", "%", "a b", "?", "#",
			`back\slash`, "C:", "file:", ".hidden", "...", "~", "*", "'\"$`", "\x01\x7f", "trailing ", "a\u0301",
		} {
			uri := proto.FileURI(p.dir + "/odd/" + name).String()
			h.must("fs/createDirectory", map[string]any{"path": p.uri("odd")})
			h.must("fs/writeFile", map[string]any{"path": uri, "dataBase64": base64Of(name)})
			if got, err := h.readFile(uri); got != name || err != nil {
				t.Errorf("%q is read as %q, %v", name, got, err)
			}
			if out, _ := h.finish(map[string]any{"cwd": p.uri("odd")}, `for f in * .[!.]* ...; do test -e "$f" && printf '%s\0' "$f"; done; true`); !strings.Contains("\x00"+out, "\x00"+name+"\x00") {
				t.Errorf("%q is %q to a command", name, out)
			}
			if v := h.must("fs/canonicalize", map[string]any{"path": uri}); v.Get("path").Str() != uri {
				t.Errorf("%q is %s, and canonical %s", name, uri, v.Get("path").Str())
			}
			entries := h.must("fs/readDirectory", map[string]any{"path": p.uri("odd")}).Get("entries")
			if want := strings.ToValidUTF8(name, "\uFFFD"); entries.Len() != 1 || entries.At(0).Get("fileName").Str() != want && want == name {
				t.Errorf("%q is listed as %q", name, entries.At(0).Get("fileName").Str())
			}
			h.must("fs/remove", map[string]any{"path": uri, "force": false})
			if left := h.must("fs/readDirectory", map[string]any{"path": p.uri("odd")}).Get("entries").Len(); left != 0 {
				t.Errorf("%q is removed, and %d entries are left", name, left)
			}
		}
	})
}

// What is written is there for the next command, also if it is asked for before
// the answer to the write is there.
func TestTrap66WriteThenStart(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for i := range scale(t, 250, 5000) {
			text := fmt.Sprint("contents ", i)
			h.must("fs/writeFile", map[string]any{"path": p.uri("f"), "dataBase64": base64Of(text)})
			_, c, err := h.spawn(nil, "cat", p.dir+"/f")
			if err != nil {
				t.Fatal(err)
			}
			wait(t, c.closed, "cat")
			if got := c.out.String(); got != text {
				t.Fatalf("%d: the command sees %q", i, got)
			}
		}
		s := dialSocket(t, p.url)
		const n = 50
		for i := range n {
			name := fmt.Sprint("new", i)
			s.send(fmt.Sprintf(`{"id":1,"method":"fs/writeFile","params":{"path":%q,"dataBase64":%q}}`, p.uri(name), base64Of("#!/bin/sh\nexit 7\n")))
			s.send(fmt.Sprintf(`{"id":2,"method":"process/start","params":{"processId":%q,"argv":["/bin/sh",%q],"cwd":"file:///","env":{},"tty":false}}`, name, p.dir+"/"+name))
			s.send(fmt.Sprintf(`{"id":3,"method":"process/read","params":{"processId":%q,"waitMs":60000,"afterSeq":0}}`, name))
		}
		for range n {
			for id := 1; id <= 3; id++ {
				got := s.answer()
				if !strings.HasPrefix(got, fmt.Sprintf(`{"id":%d,"result":`, id)) || id == 3 && !strings.Contains(got, `"exitCode":7`) {
					t.Fatalf("answer %d: %s", id, got)
				}
			}
		}
	})
}

func TestTrap68DirectoryThatIsThere(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		state := "cd " + p.dir + "; stat -c '%i %a %u %g' d"
		h.sh("cd " + p.dir + "; mkdir d; chmod 700 d; touch d/f")
		before := h.sh(state)
		for _, recursive := range []any{true, nil} {
			h.must("fs/createDirectory", map[string]any{"path": p.uri("d"), "recursive": recursive})
		}
		h.must("fs/createDirectory", map[string]any{"path": p.uri("d/new/deep")})
		if after := h.sh(state); after != before {
			t.Errorf("it was %s and is %s", before, after)
		}
	})
}

// The daemon opens nothing that a container can name, but its agent's socket:
// TestTrap69HostileSocket of internal/runtime/containerd. The linters ban
// os.Create.

// Absolute links are resolved within the container, as they are everywhere in
// root file systems.
func TestTrap70AbsoluteLinks(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		h.sh("cd " + p.dir + "; ln -s /bin bin; ln -s " + p.dir + "/bin/sh sh; mkdir up; ln -s /../../.." + p.dir + "/sh up/sh")
		for _, uri := range []string{"file:///bin/sh", p.uri("bin/sh"), p.uri("sh"), p.uri("up/sh")} {
			if got, err := h.readFile(uri); !strings.HasPrefix(got, "\x7fELF") {
				t.Errorf("%s holds %.10q, %v", uri, got, err)
			}
		}
		if out, _ := h.finish(nil, p.dir+"/up/sh -c 'echo ran'"); out != "ran\n" {
			t.Errorf("the link runs as %q", out)
		}
	})
}

// A working directory that is gone is an error of the start with a kind, and no
// descriptor of the server's leads anywhere. On a terminal, by the protocol, the
// command starts in the home directory.
func TestTrap72WorkingDirectoryIsGone(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		gone := p.uri("gone")
		h.must("fs/createDirectory", map[string]any{"path": gone})
		h.must("fs/remove", map[string]any{"path": gone})
		if _, _, err := h.spawn(map[string]any{"cwd": gone}, "true"); refused(err) != "-32603 No such file or directory (os error 2) [spawnNotFound]" {
			t.Errorf("in a directory that is gone: %s", refused(err))
		}
		_, c, err := h.spawn(map[string]any{"cwd": gone, "tty": true}, "pwd")
		if err != nil {
			t.Fatal(err)
		}
		wait(t, c.closed, "pwd")
		info := h.must("environment/info", nil)
		if got := "file://" + strings.TrimSpace(c.out.String()); got != info.Get("userHomeDir").Str() && got != "file:///" {
			t.Errorf("on a terminal it starts in %s", got)
		}
		// One that is removed under a command is that command's affair.
		if out, code := h.finish(map[string]any{"cwd": p.uri("")}, "mkdir x; cd x; rm -r ../x; true; echo still"); out != "still\n" || code != 0 {
			t.Errorf("a command in a removed directory: %q, exit %d", out, code)
		}
		for fd := range 64 {
			for _, self := range []string{"self", "thread-self", "1"} {
				if self == "1" && p.root == nil {
					continue // the machine's own init
				}
				_, c, err := h.spawn(map[string]any{"cwd": fmt.Sprintf("file:///proc/%s/fd/%d", self, fd)}, "/bin/sh", "-c", "pwd -P; ls -a")
				if err == nil {
					wait(t, c.closed, "ls")
					t.Errorf("descriptor %d of %s is a directory: %s", fd, self, c.out.String())
				} else if _, ok := errors.AsType[*proto.Error](err); !ok {
					t.Fatal(err)
				}
			}
		}
	})
}
