package fs

import (
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// FuzzDecoders gives any params to the decoder of any method. It must end soon,
// without a panic, and either give an operation or refuse with an error that has
// a place on the wire. Members that nobody knows change nothing.
func FuzzDecoders(f *testing.F) {
	for method, params := range requests {
		f.Add(method, []byte(expand("/tmp", params)))
	}
	f.Add("fs/readFile", []byte(`{"path":"file:///x","sandbox":`+restricting+`}`))
	f.Add("fs/open", []byte(`{"handleId":"`+strings.Repeat("é", 17)+`","path":"file://server/share","mode":"replace"}`))
	f.Add("fs/readBlock", []byte(`{"handleId":"","offset":18446744073709551615,"len":1048577}`))
	f.Add("fs/walk", []byte(`{"path":"file:///C:/","options":{"maxDepth":65,"maxDirectories":0,"maxEntries":50001,"followDirectorySymlinks":true,"pruneHiddenDirectories":true}}`))
	f.Fuzz(func(t *testing.T, method string, params []byte) {
		v, err := proto.Parse(params)
		if Methods[method] == nil || err != nil {
			return
		}
		began := time.Now()
		want := verdict(t, method, v)
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("%s takes %v for %d bytes", method, took, len(params))
		}
		if v.Kind != proto.Object || v.Len() == 0 || v.Get("nobody knows").Kind != proto.Absent {
			return
		}
		text := strings.TrimSpace(string(params))
		for _, other := range []string{
			`{"nobody knows":[{}],` + text[1:],
			text[:len(text)-1] + `,"nobody knows":null}`,
		} {
			v, err := proto.Parse([]byte(other))
			if err != nil { // one value too many, at most
				continue
			}
			if got := verdict(t, method, v); got != want {
				t.Fatalf("%s %s: %q, and %s: %q", method, params, want, other, got)
			}
		}
	})
}

// verdict is what a decoder says.
func verdict(t *testing.T, method string, v proto.Value) string {
	t.Helper()
	op, err := Methods[method](v)
	if err == nil {
		if op == nil {
			t.Fatal("neither operation nor error")
		}
		return ""
	}
	e := proto.WireError(err)
	if e.Code != proto.CodeInvalidParams && e.Code != proto.CodeInvalidRequest {
		t.Fatalf("refused with %d %s", e.Code, e.Message)
	}
	return e.Error()
}
