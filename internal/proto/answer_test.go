package proto

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

func TestAnswersHaveTheirExactForm(t *testing.T) {
	id := parse(t, `7`)
	for _, test := range []struct {
		frame Frame
		want  string
	}{
		{ResultFrame(id, Empty{}), `{"id":7,"result":{}}`},
		{ResultFrame(id, JSON(`[1]`)), `{"id":7,"result":[1]}`},
		{ErrorFrame(id, Invalid("no %d", 1)), `{"error":{"code":-32600,"message":"no 1"},"id":7}`},
		{ErrorFrame(id, &Error{Code: -32603, Message: "m\n\"", Kind: "k"}),
			`{"error":{"code":-32603,"data":{"kind":"k"},"message":"m\n\""},"id":7}`},
		{ErrorFrame(Value{}, BadParams("x")), `{"error":{"code":-32602,"message":"x"},"id":-1}`},
		{ErrorFrame(parse(t, `"a\u0041"`), BadParams("x")), `{"error":{"code":-32602,"message":"x"},"id":"a\u0041"}`},
	} {
		if got := string(test.frame.Body()); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
		if f, rest := NextFrame(test.frame); len(f) != len(test.frame) || len(rest) != 0 {
			t.Errorf("%s is not one whole frame", test.frame.Body())
		}
	}
}

func TestErrorsGetTheirCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		text string
	}{
		{syscall.ENOENT, CodeNotFound, "No such file or directory (os error 2)"},
		{syscall.EPERM, CodeInvalidRequest, "Operation not permitted (os error 1)"},
		{syscall.EACCES, CodeInvalidRequest, "Permission denied (os error 13)"},
		{syscall.EINVAL, CodeInvalidRequest, "Invalid argument (os error 22)"},
		{syscall.EEXIST, CodeInternal, "File exists (os error 17)"},
		{syscall.ENOTDIR, CodeInternal, "Not a directory (os error 20)"},
		{syscall.EISDIR, CodeInternal, "Is a directory (os error 21)"},
		{syscall.EROFS, CodeInternal, "Read-only file system (os error 30)"},
		{syscall.ENOTEMPTY, CodeInternal, "Directory not empty (os error 39)"},
		{syscall.ELOOP, CodeInternal, "Symbolic link loop (os error 40)"},
		{syscall.EBADF, CodeInternal, "Bad file descriptor (os error 9)"},
		{syscall.EPIPE, CodeInternal, "broken pipe (os error 32)"},
		{&os.PathError{Op: "open", Path: "/x", Err: syscall.ENOENT}, CodeNotFound, "No such file or directory (os error 2)"},
		{fmt.Errorf("wrapped: %w", Errorf(CodeAttached, "a")), CodeAttached, "a"},
		{errors.New("other"), CodeInternal, "other"},
	} {
		if e := WireError(test.err); e.Code != test.code || e.Message != test.text {
			t.Errorf("%v is %d %q, want %d %q", test.err, e.Code, e.Message, test.code, test.text)
		}
	}
}

func TestStringsAreWrittenAsJSON(t *testing.T) {
	for s, want := range map[string]string{
		"":                 `""`,
		"a\"\\/\x00\n\r\t": `"a\"\\/\u0000\n\r\t"`,
		"é😀\u2028\x7f":     "\"é😀\u2028\x7f\"",
		"a\xffb\xc3":       "\"a\uFFFDb\uFFFD\"",
		"\xed\xa0\x80":     "\"\uFFFD\uFFFD\uFFFD\"",
	} {
		if got := string(AppendString([]byte("x"), s)); got != "x"+want {
			t.Errorf("%q is written as %s", s, got)
		}
	}
}

func TestSessionIDsAreRandomUUIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewSessionID()
		if len(id) != 36 || id[14] != '4' || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' ||
			id[19] != '8' && id[19] != '9' && id[19] != 'a' && id[19] != 'b' || seen[id] {
			t.Fatalf("%s is no version 4 UUID, or not a new one", id)
		}
		seen[id] = true
	}
}
