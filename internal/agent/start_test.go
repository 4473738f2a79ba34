package agent

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

// startWith is process/start of a command with some members replaced; "-" takes
// one away.
func startWith(members map[string]string) string {
	all := map[string]string{"processId": `"p"`, "argv": `["true"]`, "cwd": `"file:///"`, "env": `{"PATH":"/bin:/usr/bin"}`, "tty": `false`}
	for name, value := range members {
		all[name] = value
	}
	var parts []string
	for name, value := range all {
		if value != "-" {
			parts = append(parts, `"`+name+`":`+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestNoMoreProcessesThanAllowed(t *testing.T) {
	h := ready(t, newServer(t, Options{MaxProcesses: 1}), proto.Hello{})
	g := newGate(t)
	h.start("a", ": <"+string(g), "")
	h.call("process/start", h.startParams("b", "true", ""),
		"-32603 resource temporarily unavailable (os error 11): 1 processes run, which is the limit [spawnFailed]")
	g.open(t)
	h.untilClosed("a")
	for h.server.running.Load() > 0 { // its thread ends a moment later
		runtime.Gosched()
	}
	h.start("b", "true", "")
	h.untilClosed("b")
}

func TestOldOutputIsDroppedWhenThereIsTooMuch(t *testing.T) {
	r := retainer{}
	p := make([]*process.Process, 3)
	for i := range p {
		done := make(chan struct{})
		var err error
		p[i], err = process.Start(process.Spec{ID: "x", Argv: []string{"head", "-c", "200000", "/dev/zero"}, Cwd: "/", Env: map[string]string{"PATH": "/bin:/usr/bin"}},
			process.Options{OutputBytes: 1 << 20, Notify: func([]byte) {}, Closed: func(*process.Process) { close(done) }})
		if err != nil {
			t.Fatal(err)
		}
		p[i].Run()
		<-done
		r.add(p[i])
	}
	r.forget(p[1])
	if r.total != 400000 || len(r.closed) != 2 {
		t.Errorf("%d bytes of %d processes are counted", r.total, len(r.closed))
	}
	r.total += maxRetained - 500000 // as if there were many more between them
	r.add(p[1])
	if p[0].Retained() != 0 || p[1].Retained() != 200000 || p[2].Retained() != 200000 {
		t.Errorf("kept are %d, %d and %d bytes", p[0].Retained(), p[1].Retained(), p[2].Retained())
	}
}

func TestStartRefusesBadParams(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	for _, test := range []struct{ name, value, want string }{
		{"processId", `-`, "-32602 missing field `processId`"},
		{"processId", `1`, "-32602 invalid type: number, expected a string"},
		{"argv", `-`, "-32602 missing field `argv`"},
		{"argv", `[]`, "-32602 argv must not be empty"},
		{"argv", `"true"`, "-32602 invalid type: string \"true\", expected a sequence"},
		{"argv", `["true",1]`, "-32602 invalid type: number, expected a string"},
		{"argv", `null`, "-32602 invalid type: null, expected a sequence"},
		{"cwd", `-`, "-32602 missing field `cwd`"},
		{"cwd", `"/tmp"`, "-32602 invalid URI: relative URL without a base"},
		{"cwd", `"https://x/"`, "-32602 unsupported path URI scheme `https`"},
		{"cwd", `"file:///C:/x"`, "-32602 cwd URI `file:///C:/x` is not valid on this exec-server host: 'file:///C:/x' is invalid on 'linux'"},
		{"env", `-`, "-32602 missing field `env`"},
		{"env", `null`, "-32602 invalid type: null, expected a map"},
		{"env", `{"A":1}`, "-32602 invalid type: number, expected a string"},
		{"tty", `-`, "-32602 missing field `tty`"},
		{"tty", `"yes"`, "-32602 invalid type: string \"yes\", expected a boolean"},
		{"pipeStdin", `null`, "-32602 invalid type: null, expected a boolean"},
		{"enforceManagedNetwork", `null`, "-32602 invalid type: null, expected a boolean"},
		{"arg0", `1`, "-32602 invalid type: number, expected a string"},
		{"metadata", `{"threadId":"x"}`, "-32602 invalid thread id `x`"},
		{"envPolicy", `{}`, "-32602 missing field `inherit`"},
		{"envPolicy", `{"inherit":"some"}`, "-32602 unknown variant `some`, expected one of `all`, `none`, `core`"},
		{"shellSnapshot", `{}`, "-32602 missing field `scopeId`"},
		{"shellSnapshot", `{"scopeId":"s","shell":{"name":"bash"}}`, "-32602 missing field `path`"},
		// What cannot be enforced is refused, never run open.
		{"sandbox", `{}`, "-32602 missing field `permissions`"},
		{"sandbox", `{"windowsSandboxLevel":"disabled"}`, "-32602 missing field `permissions`"},
		{"sandbox", `{"permissions":{"type":"disabled"},"windowsSandboxLevel":"mxc"}`, "-32602 native MXC is unavailable on this executor [sandboxUnavailable]"},
		{"sandbox", `{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled","cwd":"file:///C:/x"}`,
			"-32602 failed to prepare process sandbox: invalid sandbox policy cwd: 'file:///C:/x' is invalid on 'linux' [sandboxPreparation]"},
		{"managedNetwork", `{"transparentTcp":true}`, "-32602 transparent TCP requires an executor-local managed proxy"},
		// Failures of the start itself.
		{"argv", `["no-such-program"]`, "-32603 No such file or directory (os error 2) [spawnNotFound]"},
		{"argv", `["/etc/passwd"]`, "-32603 Permission denied (os error 13) [spawnPermissionDenied]"},
		{"argv", `[""]`, "-32603 missing program for pipe spawn [spawnFailed]"},
		{"argv", `["true","\u0000"]`, "-32603 nul byte found in provided data [spawnFailed]"},
		{"cwd", `"file:///no/such"`, "-32603 No such file or directory (os error 2) [spawnNotFound]"},
		{"cwd", `"file:///etc/passwd"`, "-32603 Not a directory (os error 20) [spawnFailed]"},
	} {
		h.call("process/start", startWith(map[string]string{test.name: test.value}), test.want)
	}
	h.call("process/start", startWith(nil), `ok {"processId":"p","sandboxType":"none"}`) // the id is free after all that
	h.untilClosed("p")
}

func TestStartAcceptsOptionalMembers(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	for i, members := range []map[string]string{
		{"metadata": `null`, "envPolicy": `null`, "shellSnapshot": `null`, "arg0": `null`, "sandbox": `null`, "managedNetwork": `null`, "networkProxy": `null`},
		{"metadata": `{}`, "pipeStdin": `true`, "enforceManagedNetwork": `true`, "more": `{"a":[]}`},
		{"metadata": `{"threadId":"0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000","toolCallId":""}`, "arg0": `""`},
		{"shellSnapshot": `{"scopeId":"s","shell":{"name":"x","path":"/x"}}`, "managedNetwork": `{}`},
		{"processId": `""`}, {"processId": `"é\n\"\\"`},
	} {
		want := `ok {"processId":"p","sandboxType":"none"}`
		if id, ok := members["processId"]; ok {
			want = strings.Replace(want, `"p"`, id, 1)
		} else {
			members["processId"] = `"p` + string(rune('0'+i)) + `"`
			want = strings.Replace(want, `"p"`, members["processId"], 1)
		}
		h.call("process/start", startWith(members), want)
	}
	for i, profile := range []string{`{"type":"disabled"}`, `{"type":"external","network":"enabled"}`, `{"type":"managed","network":"enabled","file_system":{"type":"unrestricted"}}`} {
		id := `"s` + string(rune('0'+i)) + `"`
		h.call("process/start", startWith(map[string]string{"processId": id, "sandbox": `{"permissions":` + profile + `,"windowsSandboxLevel":"disabled"}`}),
			`ok {"processId":`+id+`,"sandboxType":"linuxSeccomp"}`)
	}
}

func TestTheEnvironmentOfAStart(t *testing.T) {
	const thread = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"
	s := newServer(t, Options{Env: []string{"PATH=/usr/bin:/bin", "HOME=/h", "API_KEY=k", "OTHER=o"}, Cwd: "/", Shell: "/bin/theirs"})
	h := ready(t, s, proto.Hello{})
	for i, test := range []struct{ name, members, want string }{
		{"exactly env", `"env":{"A":"1"},"tty":false`, "A=1\n"},
		{"metadata wins", `"env":{"CODEX_THREAD_ID":"x","CODEX_TOOL_CALL_ID":"y"},"tty":false,"metadata":{"threadId":"` + thread + `","toolCallId":""}`,
			"CODEX_THREAD_ID=" + thread + "\nCODEX_TOOL_CALL_ID=\n"},
		{"policy", `"env":{"OTHER":"mine"},"tty":false,"envPolicy":{"inherit":"all","ignoreDefaultExcludes":false,"exclude":["H*"],"set":{"S":"s"},"includeOnly":[]}`,
			"OTHER=mine\nPATH=/usr/bin:/bin\nS=s\n"},
		{"terminal", `"env":{},"tty":true`, "SHELL=/bin/theirs\r\n"},
	} {
		id := string(rune('a' + i))
		h.call("process/start", `{"processId":"`+id+`","argv":["/usr/bin/env"],"cwd":"file:///",`+test.members+`}`, `ok {"processId":"`+id+`","sandboxType":"none"}`)
		if out, _ := h.untilClosed(id); out != test.want {
			t.Errorf("%s: the environment is %q, want %q", test.name, out, test.want)
		}
	}
}

func TestNothingOfTheServersOwnEnvironmentLeaks(t *testing.T) {
	t.Setenv("OPERATORS_SECRET", "s")
	h := ready(t, newServer(t, Options{Env: []string{"PATH=" + os.Getenv("PATH")}, Cwd: "/"}), proto.Hello{})
	h.start("p", "env", `,"envPolicy":{"inherit":"all","ignoreDefaultExcludes":true,"exclude":[],"set":{},"includeOnly":[]}`)
	if out, _ := h.untilClosed("p"); strings.Contains(out, "OPERATORS_SECRET") {
		t.Errorf("the environment is %q", out)
	}
}
