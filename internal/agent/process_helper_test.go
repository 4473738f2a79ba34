package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// startParams are the params of process/start for a shell script, and more
// members behind a comma.
func (h *harness) startParams(id, script, more string) string {
	text, err := json.Marshal(map[string]any{
		"processId": id, "argv": []string{"sh", "-c", script}, "cwd": "file:///", "tty": false, "env": map[string]string{"PATH": os.Getenv("PATH")},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text[:len(text)-1]) + more + "}"
}

func (h *harness) start(id, script, more string) {
	h.t.Helper()
	h.call("process/start", h.startParams(id, script, more), `ok {"processId":"`+id+`","sandboxType":"none"}`)
}

// untilClosed collects a process's output from notifications until its end.
func (h *harness) untilClosed(id string) (out string, code int) {
	h.t.Helper()
	for {
		m, err := proto.ParseMessage([]byte(h.note()))
		if err != nil {
			h.t.Fatal(err)
		}
		if m.Params.Get("processId").Str() != id {
			continue
		}
		switch m.Method {
		case "process/output":
			data, err := proto.DecodeBase64(m.Params.Get("chunk").Bytes())
			if err != nil {
				h.t.Fatal(err)
			}
			out += string(data)
		case "process/exited":
			n, _ := m.Params.Get("exitCode").Int64()
			code = int(n)
		case "process/closed":
			return out, code
		}
	}
}

// gate is a fifo that a script waits at with ": <FIFO", until open is called.
type gate string

func newGate(t *testing.T) gate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return gate(path)
}

func (g gate) open(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(string(g), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}
