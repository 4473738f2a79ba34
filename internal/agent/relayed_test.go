package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestWhatIsNoMessageEndsARelayedConnection(t *testing.T) {
	for _, text := range []string{
		``, `x`, `[]`, `null`, `1`, `"a"`, `{"id":1`, `{"id":1,"id":1,"method":"m"}`, "\x00",
		`{}`, `{"id":null,"method":"m"}`, `{"id":1,"method":2}`, `{"id":1.5,"method":"environment/status"}`,
	} {
		for _, concurrency := range []int{1, 4} {
			h := connect(t, newServer(t, Options{}), proto.Hello{Relayed: true, Concurrency: concurrency})
			h.initialize("")
			h.send("%s", text)
			h.gone()
		}
	}
}

// A file of n bytes has an answer of just the size that is carried, and one of a
// byte more, or of many, does not.
func TestAnswersThatCannotBeRelayedFailTheirRequests(t *testing.T) {
	const envelope = len(`{"id":7,"result":{"dataBase64":""}}`)
	most := (proto.MaxRequest - envelope) / 4 * 3
	path := filepath.Join(t.TempDir(), "file")
	h := ready(t, newServer(t, Options{}), proto.Hello{Relayed: true})
	read := fmt.Sprintf(`{"id":7,"method":"fs/readFile","params":{"path":%q}}`, proto.FileURI(path))
	for _, size := range []int{most + 1, most + 3, 2 * most, most} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(size)); err != nil {
			t.Fatal(err)
		}
		got := h.ask("%s", read)
		switch refused := strings.HasPrefix(got, `{"error":{"code":-32603,"message":"the answer would have about `) &&
			strings.HasSuffix(got, ` bytes, and messages of at most 67108864 can be relayed"},"id":7}`); {
		case size > most && !refused:
			t.Errorf("%d bytes: %d bytes come: %.200s", size, len(got), got)
		case size <= most && (refused || len(got) > proto.MaxRequest):
			t.Errorf("%d bytes: %d bytes come: %.200s", size, len(got), got)
		}
		h.alive()
	}
	if direct := ready(t, newServer(t, Options{}), proto.Hello{}); len(direct.ask("%s", read)) < most {
		t.Error("a direct connection does not get the file")
	}
}

func TestAnErrorThatCannotBeRelayedEndsTheConnection(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{Relayed: true})
	h.send(`{"id":"%s","method":"x"}`, strings.Repeat("x", proto.MaxRequest-40))
	h.gone()
}
