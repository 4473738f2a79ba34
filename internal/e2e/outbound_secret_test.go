package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// insideOut prints what there is to see in a sandbox, as its root: of every process
// what it was started with, its variables and the names in its maps, and all files
// with their names. The shell's own words must not have what is looked for.
const insideOut = `cd /; for p in proc/[0-9]*; do cat $p/cmdline $p/environ $p/maps $p/comm; readlink $p/exe $p/cwd $p/fd/*; done 2>/dev/null
/bin/busybox tar cf - $(ls -A / | grep -vxE 'proc|sys|dev') 2>/dev/null; ls -laR /dev; env`

// hidden is what a sandbox's files and processes have that holds text, as the host
// sees them: also what its own root may not look at. Each find is said in a word
// and a place.
func (r *root) hidden(text string) (found []string) {
	r.t.Helper()
	var pids []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" && strings.Contains(path, "/"+r.cgroup()+"/") {
			procs, _ := os.ReadFile(path)
			pids = append(pids, strings.Fields(string(procs))...)
		}
		return nil
	})
	slices.Sort(pids)
	pids = slices.Compact(pids)
	if len(pids) == 0 {
		r.t.Fatal("no process of a sandbox was found")
	}
	roots := map[string]string{} // a process of each mount namespace
	for _, pid := range pids {
		for _, what := range []string{"cmdline", "environ", "maps"} {
			data, err := os.ReadFile("/proc/" + pid + "/" + what)
			if err == nil && bytes.Contains(data, []byte(text)) {
				found = append(found, what+" of "+pid)
			}
		}
		if ns, err := os.Readlink("/proc/" + pid + "/ns/mnt"); err == nil {
			roots[ns] = "/proc/" + pid + "/root/"
		}
	}
	for _, top := range roots {
		found = append(found, search(top, text, "proc", "sys")...)
	}
	return found
}

// search looks for text in all names and files below a directory.
func search(top, text string, without ...string) (found []string) {
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has gone meanwhile
		}
		if rel, _ := filepath.Rel(top, path); d.IsDir() && slices.Contains(without, rel) {
			return filepath.SkipDir
		}
		if strings.Contains(d.Name(), text) {
			found = append(found, "name "+path)
		}
		// Not by d: it tells of what a device is mounted over.
		if info, err := os.Stat(path); err == nil && d.Type().IsRegular() && info.Mode().IsRegular() && holds(path, text) {
			found = append(found, "file "+path)
		}
		return nil
	})
	return found
}

// holds tells whether a file has text in it.
func holds(path, text string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	keep := 0
	for {
		n, err := f.Read(buf[keep:])
		if bytes.Contains(buf[:keep+n], []byte(text)) {
			return true
		}
		if err != nil {
			return false
		}
		tail := min(keep+n, len(text))
		copy(buf, buf[keep+n-tail:keep+n])
		keep = tail
	}
}

// A credential for the registry, wherever it comes from, is nowhere in a sandbox,
// in no log, and in no file of the daemon's.
func TestSecretsNeverEnterASandbox(t *testing.T) {
	o := newOutbound(t)
	r := newRoot(t, "")
	keys, files := map[string]string{}, map[string]string{}
	for _, name := range []string{"file", "variable", "command", "stdin"} {
		keys[name], files[name] = r.secret(name)
	}
	t.Setenv("E2E_SECRET", keys["variable"])
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "[environment.file]\nremote = %q\nkey_file = %q\n[environment.variable]\nremote = %q\nkey_env = \"E2E_SECRET\"\n[environment.command]\nremote = %q\nkey_command = [\"/bin/cat\", %q]\n",
		o.peer.URL, files["file"], o.peer.URL, o.peer.URL, files["command"])
	if err := os.WriteFile(r.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := r.serve()
	r.env(keys["stdin"]+"\n", "add", "stdin", "--remote", o.peer.URL, "--key-stdin")

	harnesses := map[string]*harness{}
	for name, key := range keys {
		h := o.connect(name, "")
		harnesses[name] = h
		register, validate := o.peer.Calls(name, remotetest.Register), o.peer.Calls(name, remotetest.Validate)
		for _, c := range append(register, validate...) {
			if got := c.Header.Get("Authorization"); got != "Bearer "+key { // else nothing below means anything
				t.Errorf("environment %s presents %q", name, got)
			}
		}
		if len(register) == 0 || len(validate) == 0 {
			t.Errorf("environment %s has made %d registrations and %d validations", name, len(register), len(validate))
		}
		h.sh("echo work > /workspace/f; echo work > /tmp/f")
		h.start("/bin/sleep", "1000")
	}
	for name, h := range harnesses {
		_, p := h.start("/bin/sh", "-c", insideOut)
		wait(t, p.closed, "the look around in "+name)
		if p.code != 0 || p.out.Len() < 1<<20 || !bytes.Contains(p.out.Bytes(), []byte("/bin/busybox")) {
			t.Errorf("the look around in %s has found %d bytes only, exit %d", name, p.out.Len(), p.code)
		}
		for whose, key := range keys {
			if bytes.Contains(p.out.Bytes(), []byte(key)) {
				t.Errorf("the key of %s is seen in %s", whose, name)
			}
		}
	}
	for whose, key := range keys {
		if found := r.hidden(key); found != nil {
			t.Errorf("the key of %s is in a sandbox: %v", whose, found)
		}
		for _, dir := range []string{filepath.Join(r.dir, "root"), r.state()} {
			if found := search(dir, key); found != nil {
				t.Errorf("the key of %s is in a file of the daemon: %v", whose, found)
			}
		}
		if strings.Contains(s.logs.String(), key) || strings.Contains(r.env("", "ls", "--json")+r.env("", "ls"), key) {
			t.Errorf("the key of %s is in the log, or in env ls", whose)
		}
	}

	h := harnesses["file"]
	look := func(text string) (inside bool, found []string) {
		_, p := h.start("/bin/sh", "-c", insideOut)
		wait(t, p.closed, "the look around")
		return bytes.Contains(p.out.Bytes(), []byte(text)), r.hidden(text)
	}
	// What the looks are worth: a key that is planted is found, in each place.
	planted := "planted-" + keys["file"]
	write := func(path, text string) {
		t.Helper()
		if _, err := h.call("fs/writeFile", map[string]any{"path": "file://" + path, "dataBase64": base64.StdEncoding.EncodeToString([]byte(text))}); err != nil {
			t.Fatal(err)
		}
	}
	start := func(argv []string, arg0 any, env map[string]string) (cure func()) {
		t.Helper()
		id := fmt.Sprint("planted-", serial.Add(1))
		if _, err := h.call("process/start", map[string]any{"processId": id, "argv": argv, "arg0": arg0, "cwd": "file:///", "env": env, "tty": false}); err != nil {
			t.Fatal(err)
		}
		return func() {
			if _, err := h.call("process/terminate", map[string]any{"processId": id}); err != nil {
				t.Error(err)
			}
			wait(t, h.proc(id).closed, "the end of what was planted")
		}
	}
	remove := func(path string) func() { return func() { h.sh("rm " + path) } }
	for _, tt := range []struct {
		place string // how hidden begins to tell of it
		plant func() (cure func())
	}{
		{"cmdline of ", func() func() {
			return start([]string{"/bin/sh", "-c", "sleep 1000; true", planted}, nil, map[string]string{})
		}},
		{"environ of ", func() func() { return start([]string{"/bin/sleep", "1000"}, nil, map[string]string{"K": planted}) }},
		{"maps of ", func() func() {
			h.sh("cp /bin/busybox /tmp/program")
			if _, err := h.call("fs/copy", map[string]any{"sourcePath": "file:///tmp/program", "destinationPath": "file:///tmp/" + planted, "recursive": false}); err != nil {
				t.Fatal(err)
			}
			cure := start([]string{"/tmp/" + planted, "1000"}, "sleep", map[string]string{})
			h.sh("rm /tmp/planted-*")
			return cure
		}},
		{"file /proc/", func() func() { write("/etc/f", "the key is "+planted); return remove("/etc/f") }},
		{"file /proc/", func() func() { write("/workspace/deep", planted); return remove("/workspace/deep") }},
		{"file /proc/", func() func() { write("/dev/shm/f", planted); return remove("/dev/shm/f") }},
		{"name /proc/", func() func() { write("/tmp/"+planted, "x"); return remove("/tmp/planted-*") }},
	} {
		cure := tt.plant()
		inside, found := look(planted)
		if !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, tt.place) }) {
			t.Errorf("what was planted is not found as %q by the host: %v", tt.place, found)
		}
		if !inside && !strings.Contains(fmt.Sprint(found), "/dev/shm/") { // tar leaves /dev out
			t.Errorf("what was planted is not found inside: %v", found)
		}
		cure()
	}
	if inside, found := look(planted); inside || found != nil {
		t.Errorf("what was planted stays: %v", found)
	}
	// The same for the daemon's own files.
	file := filepath.Join(r.dir, "root", "planted")
	if err := os.WriteFile(file, append(make([]byte, 1<<20-5), planted...), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := search(filepath.Join(r.dir, "root"), planted); len(found) == 0 {
		t.Error("what was planted is not found in the daemon's files")
	}
	if err := os.Remove(file); err != nil {
		t.Error(err)
	}
}
