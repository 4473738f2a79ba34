package agent

import (
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

// valid has params for every method that pass their decoding, and the word for
// the method in errors of the handshake.
var valid = map[string]struct{ params, family string }{
	"environment/status": {`null`, "environment status"},
	"environment/info":   {`{}`, "environment info"},
	"process/start":      {`{"processId":"p","argv":["true"],"cwd":"file:///","env":{},"tty":false}`, "exec"},
	"process/read":       {`{"processId":"p"}`, "exec"},
	"process/write":      {`{"processId":"p","chunk":"","writeId":"1"}`, "exec"},
	"process/signal":     {`{"processId":"p","signal":"interrupt"}`, "exec"},
	"process/terminate":  {`{"processId":"p"}`, "exec"},
	"process/resize":     {`{"processId":"p","rows":1,"cols":1}`, "exec"},
	"process/closeStdin": {`{"processId":"p"}`, "exec"},
	"http/request":       {`{"method":"GET","url":"http://x","requestId":"r"}`, "http"},
	"fs/readFile":        {`{"path":"file:///x"}`, "filesystem"},
	"fs/writeFile":       {`{"path":"file:///x","dataBase64":""}`, "filesystem"},
	"fs/open":            {`{"handleId":"h","path":"file:///x"}`, "filesystem"},
	"fs/readBlock":       {`{"handleId":"h","offset":0,"len":1}`, "filesystem"},
	"fs/writeBlock":      {`{"handleId":"h","offset":0,"chunk":"AA=="}`, "filesystem"},
	"fs/close":           {`{"handleId":"h"}`, "filesystem"},
	"fs/createDirectory": {`{"path":"file:///x"}`, "filesystem"},
	"fs/getMetadata":     {`{"path":"file:///x"}`, "filesystem"},
	"fs/canonicalize":    {`{"path":"file:///x"}`, "filesystem"},
	"fs/readDirectory":   {`{"path":"file:///x"}`, "filesystem"},
	"fs/walk":            {`{"path":"file:///x","options":{"maxDepth":1,"maxDirectories":1,"maxEntries":1,"followDirectorySymlinks":false}}`, "filesystem"},
	"fs/remove":          {`{"path":"file:///x"}`, "filesystem"},
	"fs/watchMissing":    {`{"watchId":1,"missing":[]}`, "filesystem"},
	"fs/copy":            {`{"sourcePath":"file:///x","destinationPath":"file:///y","recursive":false}`, "filesystem"},

	"environmentConfig/read":  {`{"cwd":"file:///","configPaths":[["a"]],"requirementsPaths":[]}`, "environment config"},
	"capabilities/discoverV2": {`{"cwd":"file:///"}`, "capability discovery"},

	"capabilityRoots/discoverV1": {`{"roots":[]}`, "capability discovery"},
}

func TestEveryMethodIsKnown(t *testing.T) {
	for name := range methods {
		if _, ok := valid[name]; !ok && name != "initialize" && !strings.HasPrefix(name, "test/") {
			t.Errorf("the tests do not know %s", name)
		}
	}
	for name := range valid {
		if _, ok := methods[name]; !ok {
			t.Errorf("%s is not implemented", name)
		}
	}
}

func TestMethodsWaitForTheHandshake(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{Extensions: true})
	for name, m := range valid {
		h.call(name, m.params, "-32600 client must call initialize before using "+m.family+" methods")
	}
	if got := h.result("initialize", `{"clientName":""}`); !strings.HasPrefix(got, `ok {"sessionId":"`) {
		t.Fatal(got)
	}
	for name, m := range valid {
		h.call(name, m.params, "-32600 client must send initialized before using "+m.family+" methods")
	}
	h.send(`{"method":"initialized","params":[1,"any"]}`)
	h.send(`{"method":"initialized"}`) // may be repeated
	h.call("environment/status", `null`, `ok {"status":"ready"}`)
	h.call("initialize", `{"clientName":"x"}`, "-32600 initialize may only be sent once per connection")
	h.call("initialize", `{"clientName":"x","resumeSessionId":"y"}`, "-32600 initialize may only be sent once per connection")
	h.call("environment/status", `{}`, `ok {"status":"ready"}`)
}

// The order is: unknown method, params, state.
func TestChecksHaveTheirOrder(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{})
	h.call("nonsense", `5`, "-32601 exec-server stub does not implement `nonsense` yet")
	h.call("fs/readFile", `{}`, "-32602 missing field `path`")
	h.call("process/start", `{}`, "-32602 missing field `processId`")
	h.call("environment/status", `[]`, "-32602 invalid type: sequence, expected unit")
	h.call("environment/status", `{"x":1}`, "-32602 invalid type: map, expected unit")
	h.call("initialize", `{}`, "-32602 missing field `clientName`")
	h.call("initialize", `null`, "-32602 invalid type: null, expected struct InitializeParams")
	h.call("initialize", `{"clientName":null}`, "-32602 invalid type: null, expected a string")
	h.call("initialize", `{"clientName":"x","resumeSessionId":1}`, "-32602 invalid type: number, expected a string")
	h.initialize("") // after all these failures
	h.call("initialize", `{}`, "-32602 missing field `clientName`")
}

func TestUnknownMethods(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	for _, name := range []string{
		"", "x", "Initialize", "PROCESS/START", "process/start ", "process", "process/output", "process/exited", "process/closed",
		"initialized", "environment/config", "fs/watch", "fs/move", "rpc.discover", "network/policyRequest",
		"process/resize", "process/closeStdin", // ours, not the protocol's
	} {
		h.call(name, `{}`, "-32601 exec-server stub does not implement `"+name+"` yet")
	}
	h.expect(`{"id":2,"method":"a\"\n"}`, `{"error":{"code":-32601,"message":"exec-server stub does not implement `+"`a\\\"\\n`"+` yet"},"id":2}`)
}

func TestExtensionsHaveToBeAllowed(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{Extensions: true})
	h.call("process/resize", `{"processId":"none","rows":24,"cols":80}`, "ok {}")
	h.call("process/resize", `{"processId":"none","rows":0,"cols":80}`, "-32602 rows and cols must be between 1 and 32768")
	h.call("process/closeStdin", `{"processId":"none"}`, "ok {}")
}

func TestNotificationsAreNotMethods(t *testing.T) {
	for _, before := range []bool{true, false} {
		for _, text := range []string{
			`{"method":"initialized2"}`, `{"method":"environment/status"}`, `{"method":""}`, `{"method":"process/terminate","params":{"processId":"p"}}`,
			`{"id":1,"result":{}}`, `{"id":1,"error":{"code":1,"message":""}}`, `{"id":"x","result":null}`,
		} {
			s := newServer(t, Options{})
			h := connect(t, s, proto.Hello{})
			if !before {
				h.initialize("")
			}
			h.send("%s", text)
			h.gone()
		}
	}
	h := connect(t, newServer(t, Options{}), proto.Hello{})
	h.send(`{"method":"initialized"}`) // before initialize
	h.gone()
}
