package agent

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestNotificationsHaveTheirExactForm(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		h := ready(t, newServer(t, Options{}), proto.Hello{Concurrency: concurrency})
		g := newGate(t)
		h.start("p é", "printf hello; : <"+string(g)+"; printf oops >&2; exit 3", "")
		for _, want := range []string{
			`{"method":"process/output","params":{"processId":"p é","seq":1,"stream":"stdout","chunk":"aGVsbG8="}}`,
			`{"method":"process/output","params":{"processId":"p é","seq":2,"stream":"stderr","chunk":"b29wcw=="}}`,
			`{"method":"process/exited","params":{"processId":"p é","seq":3,"exitCode":3,"sandboxDenied":false}}`,
			`{"method":"process/closed","params":{"processId":"p é","seq":4}}`,
		} {
			if got := h.note(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if strings.Contains(want, "aGVsbG8=") {
				g.open(t)
			}
		}
		h.call("process/read", `{"processId":"p é","afterSeq":null,"maxBytes":null,"waitMs":null}`,
			`ok {"chunks":[{"seq":1,"stream":"stdout","chunk":"aGVsbG8="},{"seq":2,"stream":"stderr","chunk":"b29wcw=="}],"nextSeq":5,"exited":true,"exitCode":3,"closed":true,"failure":null,"sandboxDenied":false}`)
	}
}

func TestReadRequests(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	h.start("p", "cat; exit 3", `,"pipeStdin":true`)
	const idle = `"exited":false,"exitCode":null,"closed":false,"failure":null,"sandboxDenied":false}`
	h.call("process/read", `{"processId":"p"}`, `ok {"chunks":[],"nextSeq":1,`+idle)
	h.call("process/read", `{"processId":"p","waitMs":20,"afterSeq":100}`, `ok {"chunks":[],"nextSeq":1,`+idle)
	h.call("process/write", `{"processId":"p","chunk":"YQ==","writeId":"1"}`, `ok {"status":"accepted"}`)
	h.call("process/read", `{"processId":"p","waitMs":60000}`, `ok {"chunks":[{"seq":1,"stream":"stdout","chunk":"YQ=="}],"nextSeq":2,`+idle)
	h.call("process/read", `{"processId":"p","maxBytes":0}`, `ok {"chunks":[{"seq":1,"stream":"stdout","chunk":"YQ=="}],"nextSeq":2,`+idle)
	h.call("process/read", `{"processId":"none"}`, "-32600 unknown process id none")
	for _, bad := range []string{`"afterSeq":-1`, `"maxBytes":1.5`, `"waitMs":18446744073709551616`} {
		h.call("process/read", `{"processId":"p",`+bad+`}`, "-32602 invalid number")
	}
	h.call("process/read", `{"processId":"p","waitMs":"1"}`, `-32602 invalid type: string "1", expected u64`)
	h.call("process/read", `null`, "-32602 invalid type: null, expected struct ReadParams")
	h.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
	if got := h.result("process/read", `{"processId":"p","waitMs":60000,"afterSeq":3}`); !strings.Contains(got, `"exitCode":137,"closed":true`) {
		t.Error(got)
	}
}

func TestWriteRequests(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	h.start("plain", "exit 0", "")
	h.start("p", "cat", `,"pipeStdin":true`)
	for _, test := range []struct{ params, want string }{
		{`{"processId":"none","chunk":"","writeId":"1"}`, `ok {"status":"unknownProcess"}`},
		{`{"processId":"plain","chunk":"","writeId":"1"}`, `ok {"status":"stdinClosed"}`},
		{`{"processId":"none","chunk":"!","writeId":""}`, "-32602 writeId must not be empty"}, // checked first
		{`{"processId":"p","chunk":"a","writeId":"1"}`, "-32602 Invalid padding"},
		{`{"processId":"p","chunk":"!aaa","writeId":"1"}`, "-32602 Invalid symbol 33, offset 0."},
		{`{"processId":"p","chunk":null,"writeId":"1"}`, "-32602 invalid type: null, expected a string"},
		{`{"processId":"p","writeId":"1"}`, "-32602 missing field `chunk`"},
		{`{"processId":"p","chunk":""}`, "-32602 missing field `writeId`"},
		{`{"processId":"p","chunk":"YWJj","writeId":"1"}`, `ok {"status":"accepted"}`},
		{`{"processId":"p","chunk":"WFla","writeId":"1"}`, `ok {"status":"accepted"}`}, // the same write
		{`{"processId":"p","chunk":"","writeId":"2"}`, `ok {"status":"accepted"}`},
	} {
		h.call("process/write", test.params, test.want)
	}
	h.call("process/read", `{"processId":"p","waitMs":60000}`,
		`ok {"chunks":[{"seq":1,"stream":"stdout","chunk":"YWJj"}],"nextSeq":2,"exited":false,"exitCode":null,"closed":false,"failure":null,"sandboxDenied":false}`)
	h.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
	h.call("process/write", `{"processId":"p","chunk":"YWJj","writeId":"3"}`, "-32603 failed to write to process stdin")
	h.call("process/write", `{"processId":"p","chunk":"YWJj","writeId":"1"}`, `ok {"status":"accepted"}`)
	h.untilClosed("p")
	h.call("process/terminate", `{"processId":"p"}`, `ok {"running":false}`)
}

func TestSignalRequests(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	h.call("process/signal", `{"processId":"none","signal":"interrupt"}`, `ok {}`)
	h.call("process/signal", `{"processId":"none","signal":"terminate"}`, "-32602 unknown variant `terminate`, expected `interrupt`")
	h.call("process/signal", `{"processId":"none"}`, "-32602 missing field `signal`")
	h.call("process/start", `{"processId":"p","argv":["sleep","1000"],"cwd":"file:///","env":{},"tty":false}`, `ok {"processId":"p","sandboxType":"none"}`)
	h.call("process/signal", `{"processId":"p","signal":"interrupt"}`, `ok {}`)
	if _, code := h.untilClosed("p"); code != 130 {
		t.Errorf("exit code %d", code)
	}
	h.call("process/signal", `{"processId":"p","signal":"interrupt"}`, `ok {}`)
}

// A write that waits for room is ended by a terminate of another lane.
func TestTerminateEndsAWaitingWrite(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{Concurrency: 2})
	h.start("p", "sleep 1000", `,"pipeStdin":true`)
	chunk := base64.StdEncoding.EncodeToString(make([]byte, 128<<10)) // more than a pipe holds
	p, _ := h.session().find("p")
	for i := 0; !p.StdinFull(); i++ {
		h.call("process/write", `{"processId":"p","chunk":"`+chunk+`","writeId":"`+string(rune(0x100+i))+`"}`, `ok {"status":"accepted"}`)
		chunk = "AA=="
	}
	h.send(`{"id":1,"method":"process/write","params":{"processId":"p","chunk":"AA==","writeId":"last"}}`)
	h.send(`{"id":2,"method":"process/terminate","params":{"processId":"p"}}`)
	got := h.answer() + h.answer()
	if !strings.Contains(got, `{"id":2,"result":{"running":true}}`) || !strings.Contains(got, `{"error":{"code":-32603,"message":"failed to write to process stdin"},"id":1}`) {
		t.Error(got)
	}
}
