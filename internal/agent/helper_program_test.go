package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/helper"
	"github.com/exec-server/exec-server/internal/netproxy/masking"
	"github.com/exec-server/exec-server/internal/proto"
)

// helperEnv makes the test binary a helper program: "real", or one that has been
// taken over by what it read, and does what the word says.
const helperEnv = "EXEC_SERVER_TEST_HELPER"

func helperServer(t *testing.T, mode string, env ...string) *Server {
	t.Helper()
	return newServer(t, Options{Helper: "/proc/self/exe", Env: append(env, helperEnv+"="+mode, "PATH="+os.Getenv("PATH")), Cwd: "/", Home: t.TempDir()})
}

func mask(c *helper.Call) { c.Answer(masking.Answer(c.Params.AppendJSON(nil))) }

// testHelper is the helper program.
func testHelper(mode string) {
	if mode == "real" {
		serve := map[string]func(*helper.Call){"http": helper.HTTP(), "config": helper.Config, "discover": helper.Discover, "masking": mask}[os.Args[1]]
		if err := helper.Serve(serve); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(0)
	}
	socket := os.NewFile(helper.SocketFD, "agent")
	conn := proto.NewStreamConn(socket, proto.MaxRequest)
	for {
		f, err := conn.ReadFrame()
		if err != nil {
			os.Exit(0)
		}
		m, err := proto.ParseMessage(f.Body())
		if err != nil {
			os.Exit(1)
		}
		id, stream := string(m.ID.Raw()), m.Params.Get("requestId").Str()
		write := func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			text = strings.NewReplacer("ID", id, "STREAM", stream).Replace(text)
			_ = conn.WriteFrames(proto.FrameOf([]byte(text)))
		}
		good := `{"id":ID,"result":{"status":200,"headers":[],"bodyBase64":""}}`
		delta := `{"method":"http/request/bodyDelta","params":{"requestId":"STREAM","seq":1,"deltaBase64":"YQ==","done":false,"error":null}}`
		switch mode {
		case "exits":
			os.Exit(0)
		case "hangs":
			time.Sleep(time.Hour)
		case "huge":
			_, _ = socket.Write([]byte{0xff, 0xff, 0xff, 0x7f, 'x'})
		case "delta-first":
			write("%s", delta)
			write("%s", good)
		case "dies-in-stream":
			write("%s", good)
			write("%s", delta)
			os.Exit(0)
		default:
			if after, ok := strings.CutPrefix(mode, "stream:"); ok {
				write("%s", good)
				write("%s", after)
			} else {
				write("%s", mode)
			}
		}
	}
}

const (
	simpleGet = `{"method":"GET","url":"http://127.0.0.1:1/","requestId":"r"}`
	streamGet = `{"method":"GET","url":"http://127.0.0.1:1/","requestId":"r","streamResponse":true}`
	ended     = "-32603 http/request failed: the helper program ended"
)

func TestNothingIsBelievedThatAHelperAnswers(t *testing.T) {
	for _, test := range []struct{ mode, want string }{
		{"exits", ended},
		{"huge", ended},
		{"not json", ended},
		{"[]", ended},
		{`{"id":99,"result":{}}`, ended},
		{`{"id":"1","result":{"status":200,"headers":[],"bodyBase64":""}}`, ended},
		{`{"id":ID}`, ended},
		{`{"id":ID,"result":{}}`, ended},
		{`{"id":ID,"result":{"status":20000,"headers":[],"bodyBase64":""}}`, ended},
		{`{"id":ID,"result":{"status":200,"headers":{},"bodyBase64":""}}`, ended},
		{`{"id":ID,"result":{"status":200,"headers":[{"name":1,"value":""}],"bodyBase64":""}}`, ended},
		{`{"id":ID,"result":{"status":200,"headers":[],"bodyBase64":"!"}}`, ended},
		{`{"id":ID,"result":{"status":200,"headers":[],"bodyBase64":"","x":1}}`, ended},
		{` {"id":ID,"result":{"status":200,"headers":[],"bodyBase64":""}}`, ended},
		{`{"id":ID,"result":{"status":200,"headers":[],"bodyBase64":""},"error":null}`, ended},
		{`{"method":"process/exited","params":{}}`, ended},
		{"delta-first", ended},
		{`{"id":ID,"error":{"code":-32010,"message":"m"}}`, "-32603 m"},
		{`{"id":ID,"error":{"code":-32602,"message":"m"}}`, "-32602 m"},
		{`{"id":ID,"error":{"code":-32603,"message":"` + strings.Repeat("x", 65<<10) + `"}}`, ended},
		{`{"id":ID,"error":{"code":-32603}}`, ended},
	} {
		h := ready(t, helperServer(t, test.mode), proto.Hello{})
		h.call("http/request", simpleGet, test.want)
		h.alive()
		h.call("http/request", simpleGet, test.want) // by another one
		if strings.HasPrefix(test.mode, "{") && test.want == ended {
			h.call("environmentConfig/read", `{"cwd":"file:///","configPaths":[["x"]],"requirementsPaths":[]}`, "-32603 environmentConfig/read failed: the helper program ended")
			h.call("capabilities/discoverV2", `{"cwd":"file:///"}`, "-32603 capabilities/discoverV2 failed: the helper program ended")
		}
		h.leave()
	}
}

// A stream ends with an error if the helper breaks the rules, and what breaks
// them reaches nobody.
func TestNothingIsBelievedThatAHelperStreams(t *testing.T) {
	delta := func(params string) string {
		return `stream:{"method":"http/request/bodyDelta","params":{` + params + `}}`
	}
	for _, mode := range []string{
		"stream:x", "stream:[]", `stream:{"method":"process/exited","params":{}}`, `stream:{"method":"http/request/bodyDelta"}`,
		delta(`"requestId":"other","seq":1,"deltaBase64":"YQ==","done":false,"error":null`),
		delta(`"requestId":"r","seq":2,"deltaBase64":"YQ==","done":false,"error":null`),
		delta(`"requestId":"r","seq":1,"deltaBase64":"","done":false,"error":null`),
		delta(`"requestId":"r","seq":1,"deltaBase64":"YQ==","done":true,"error":null`),
		delta(`"requestId":"r","seq":1,"deltaBase64":"YQ==","done":false,"error":"x"`),
		delta(`"requestId":"r","seq":1,"deltaBase64":"=YQ=","done":false,"error":null`),
		delta(`"requestId":"r","seq":1,"deltaBase64":"YQ==","done":false,"error":null,"more":1`),
		`stream:{"method":"http/request/bodyDelta","params":{"requestId":"r","seq":1,"deltaBase64":"YQ==","done":false,"error":null},"id":5}`,
	} {
		h := ready(t, helperServer(t, mode), proto.Hello{})
		h.call("http/request", streamGet, `ok {"status":200,"headers":[],"bodyBase64":""}`)
		want := `{"method":"http/request/bodyDelta","params":{"requestId":"r","seq":1,"deltaBase64":"","done":true,"error":"the helper program ended"}}`
		if got := h.note(); got != want {
			t.Errorf("%s: %s", mode, got)
		}
		h.call("http/request", streamGet, `ok {"status":200,"headers":[],"bodyBase64":""}`) // the id is free again
		h.leave()
	}
	h := ready(t, helperServer(t, "dies-in-stream"), proto.Hello{})
	h.call("http/request", streamGet, `ok {"status":200,"headers":[],"bodyBase64":""}`)
	if got := h.note(); !strings.Contains(got, `"seq":1,"deltaBase64":"YQ=="`) {
		t.Error(got)
	}
	if got := h.note(); !strings.Contains(got, `"seq":2,"deltaBase64":"","done":true,"error":"the helper program ended"`) {
		t.Error(got)
	}
}

// No helper outlives its connection, whatever it does, and none stays a zombie.
func TestHelpersEndWithTheirConnection(t *testing.T) {
	for _, method := range []struct{ name, params string }{
		{"http/request", simpleGet},
		{"capabilities/discoverV2", `{"cwd":"file:///"}`},
	} {
		h := ready(t, helperServer(t, "hangs"), proto.Hello{})
		h.send(`{"id":1,"method":"%s","params":%s}`, method.name, method.params)
		h.send(`{"id":2,"method":"environment/status"}`)
		eventually(t, "a helper", func() bool { return len(children(t)) == 1 && h.server.running.Load() == 1 })
		h.leave()
		eventually(t, "no helper", func() bool { return len(children(t)) == 0 && h.server.running.Load() == 0 })
	}
}

func TestHelpersCountAsProcesses(t *testing.T) {
	s := helperServer(t, "hangs")
	s.opts.MaxProcesses = 1
	h := ready(t, s, proto.Hello{Concurrency: 2})
	h.send(`{"id":1,"method":"http/request","params":%s}`, simpleGet)
	eventually(t, "a helper", func() bool { return s.running.Load() == 1 })
	if got := h.ask(`{"id":2,"method":"capabilities/discoverV2","params":{"cwd":"file:///"}}`); !strings.Contains(got, "1 processes run, which is the limit") {
		t.Error(got)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("no %s", what)
		}
	}
}

// children are the processes that this one has started.
func children(t *testing.T) (pids []int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // it has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			// What waits for commands to confine is nobody's helper.
			comm, _ := os.ReadFile("/proc/" + field + "/comm")
			if pid, err := strconv.Atoi(field); err == nil && string(comm) != "sandbox-init\n" {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func FuzzHelperMessages(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{"status":200,"headers":[{"name":"a","value":"b"}],"bodyBase64":"YQ=="}}`))
	f.Add([]byte(`{"method":"http/request/bodyDelta","params":{"requestId":"r","seq":1,"deltaBase64":"YQ==","done":false,"error":null}}`))
	f.Add([]byte(`{"id":1,"error":{"code":-32602,"message":"m"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		gone := make(chan struct{})
		close(gone)
		s := &sink{}
		c := &conn{out: newOutbox(s), gone: gone}
		call := &httpCall{id: 1, stream: "q", opens: true, done: make(chan struct{}), sent: make(chan struct{})}
		h := &httpHelper{calls: map[uint64]*httpCall{1: call}, streams: map[string]uint64{"r": 0, "q": 0}}
		if !h.take(c, proto.FrameOf(data)) {
			if len(s.frames) > 0 {
				t.Errorf("what is refused is sent on: %q", data)
			}
			return
		}
		if f, _ := proto.NextFrame(s.frames); f != nil {
			v, err := proto.Parse(f.Body())
			if err != nil || v.Get("method").Str() != "http/request/bodyDelta" {
				t.Errorf("%q is sent on", f.Body())
			}
		}
	})
}
