package agent

import (
	"os"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

const levelAndRoots = `"windowsSandboxLevel":"disabled","policyContext":{"cwd":"file://$D","workspaceRoots":["file://$D"]}`

// profile is a "sandbox" member with entries.
func profile(entries string) string {
	return `"sandbox":{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[` + entries + `]},"network":"restricted"},` + levelAndRoots + `}`
}

const (
	readRoot     = `{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}`
	writeProject = `{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"}`
	denySecret   = `{"path":{"type":"path","path":"file://$D/secret"},"access":"deny"}`
)

func TestFilesUnderAProfile(t *testing.T) {
	testroot.Need(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "A", "secret": "S"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	readOnly, workspace, denied, hidden := profile(readRoot), profile(readRoot+","+writeProject), profile(readRoot+","+writeProject+","+denySecret), profile(writeProject)
	const erofs, eacces, enoent = "-32603 Read-only file system (os error 30)", "-32600 Permission denied (os error 13)", "-32004 No such file or directory (os error 2)"
	for _, test := range []struct{ method, params, sandbox, want string }{
		{"readFile", `"path":"$U/a"`, readOnly, `ok {"dataBase64":"QQ=="}`},
		{"readFile", `"path":"$U/none"`, readOnly, enoent},
		{"writeFile", `"path":"$U/a","dataBase64":"eA=="`, readOnly, erofs},
		{"createDirectory", `"path":"$U/d"`, readOnly, erofs},
		{"createDirectory", `"path":"$U"`, readOnly, `ok {}`},
		{"remove", `"path":"$U/a"`, readOnly, erofs},
		{"copy", `"sourcePath":"$U/a","destinationPath":"$U/b","recursive":false`, readOnly, erofs},
		{"open", `"handleId":"h","path":"$U/n","mode":"replace"`, readOnly, erofs},
		{"open", `"handleId":"h","path":"$U/a"`, readOnly, `ok {"handleId":"h"}`},
		{"writeFile", `"path":"$U/n","dataBase64":"eA=="`, workspace, `ok {}`},
		{"writeFile", `"path":"/etc/x","dataBase64":"!"`, workspace, "-32602 invalid URI: relative URL without a base"},
		{"writeFile", `"path":"file:///etc/x","dataBase64":"!"`, workspace, "-32600 fs/writeFile requires valid base64 dataBase64: Invalid symbol 33, offset 0."},
		{"writeFile", `"path":"file:///etc/x","dataBase64":"eA=="`, workspace, erofs},
		{"writeFile", `"path":"$U/.git/x","dataBase64":"eA=="`, workspace, erofs},
		{"createDirectory", `"path":"$U/.git","recursive":false`, workspace, "-32603 File exists (os error 17)"},
		{"open", `"handleId":"w","path":"$U/w","mode":"replace"`, workspace, `ok {"handleId":"w"}`},
		{"readFile", `"path":"$U/secret"`, denied, eacces},
		{"open", `"handleId":"s","path":"$U/secret"`, denied, eacces},
		{"readFile", `"path":"$U/a"`, denied, `ok {"dataBase64":"QQ=="}`},
		{"readFile", `"path":"$U/a"`, hidden, `ok {"dataBase64":"QQ=="}`},
		{"readFile", `"path":"file:///etc/passwd"`, hidden, enoent},
		{"canonicalize", `"path":"$U/a"`, hidden, `ok {"path":"$U/a"}`},
		{"getMetadata", `"path":"$U"`, profile(writeProject + `,{"path":{"type":"path","path":"file:///C:/x"},"access":"read"}`), "-32600 invalid sandbox permission path URI: 'file:///C:/x' is invalid on 'linux'"},
		{"getMetadata", `"path":"$U"`, strings.ReplaceAll(hidden, `"cwd":"file://$D",`, ""), "-32602 file system sandbox context with dynamic permissions requires cwd"},
		{"getMetadata", `"path":"$U"`, strings.ReplaceAll(hidden, `"windowsSandboxLevel":"disabled"`, `"windowsSandboxLevel":"mxc"`),
			"-32600 failed to prepare fs sandbox: failed to prepare MXC sandbox: native MXC is unavailable on this executor"},
		{"getMetadata", `"path":"$U"`, `"sandbox":{"useLegacyLandlock":true,` + strings.TrimPrefix(hidden, `"sandbox":{`),
			"-32603 failed to prepare fs sandbox: cannot enforce the sandbox: files can be restricted by mounts only, not in the legacy way"},
	} {
		expand := strings.NewReplacer("$U", "file://"+dir, "$D", dir).Replace
		h.call("fs/"+test.method, expand("{"+test.params+","+test.sandbox+"}"), expand(test.want))
	}
	h.call("fs/readBlock", `{"handleId":"h","offset":0,"len":1}`, `ok {"chunk":"QQ==","eof":false}`)
	h.call("fs/writeBlock", `{"handleId":"w","offset":0,"chunk":"eA=="}`, `ok {}`)
	h.call("fs/readDirectory", `{"path":"file://`+dir+`/.git"}`, enoent) // what stood in for it is gone
}

func TestCommandsUnderAProfile(t *testing.T) {
	testroot.Need(t)
	dir := t.TempDir()
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	h.call("process/start", strings.ReplaceAll(`{"processId":"p","argv":["/bin/sh","-c","echo x >f; echo x >/etc/x; mkdir .git"],"cwd":"file://$D","env":{},"tty":false,`+profile(readRoot+","+writeProject)+`}`, "$D", dir),
		`ok {"processId":"p","sandboxType":"linuxSeccomp"}`)
	for {
		if note := h.note(); strings.Contains(note, `"process/exited"`) {
			if !strings.Contains(note, `"exitCode":1,"sandboxDenied":true`) {
				t.Errorf("it ends with %s", note)
			}
		} else if strings.Contains(note, `"process/closed"`) {
			break
		}
	}
	if got := h.result("process/read", `{"processId":"p"}`); !strings.Contains(got, `"sandboxDenied":true`) {
		t.Errorf("read tells %s", got)
	}
	h.call("fs/readFile", `{"path":"file://`+dir+`/f"}`, `ok {"dataBase64":"eAo="}`)
	h.call("fs/readDirectory", `{"path":"file://`+dir+`"}`, `ok {"entries":[{"fileName":"f","isDirectory":false,"isFile":true}]}`)
}
