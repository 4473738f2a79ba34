package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestWatchMissing(t *testing.T) {
	s := newServer(t, Options{})
	for _, concurrency := range []int{1, 4} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "x")
		params := `{"watchId":7,"missing":["` + proto.FileURI(path).String() + `"]}`
		h := connect(t, s, proto.Hello{Concurrency: concurrency})
		h.call("fs/watchMissing", params, "-32600 client must call initialize before using filesystem methods")
		h.initialize("")
		h.call("fs/watchMissing", params, `ok {"watching":true}`)
		h.call("fs/watchMissing", params, `ok {"watching":false}`) // the id does not grow
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := h.note(), `{"method":"fs/missingChanged","params":{"watchId":7}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		h.call("fs/watchMissing", `{"watchId":8,"missing":["`+proto.FileURI(path).String()+`"]}`, `ok {"watching":false}`)
	}
}

// A watch is the connection's: neither another one nor the session has it.
func TestAWatchEndsWithItsConnection(t *testing.T) {
	s := newServer(t, Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x")
	params := `{"watchId":1,"missing":["` + proto.FileURI(path).String() + `"]}`
	h := ready(t, s, proto.Hello{})
	h.call("fs/watchMissing", params, `ok {"watching":true}`)
	h.leave()
	again := connect(t, s, proto.Hello{})
	again.initialize(h.id)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-again.notes:
		t.Errorf("%s came", text)
	case <-time.After(100 * time.Millisecond):
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again.call("fs/watchMissing", params, `ok {"watching":true}`) // ids begin anew
}
