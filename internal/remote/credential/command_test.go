package credential

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestCommand(t *testing.T) {
	s := must(t)(Command(shell("cat; echo ' tok '")))
	if got := shown(t, s); got != "Bearer tok" {
		t.Error(got)
	}
	allow(t, s, "https://h.test", true)
	allow(t, s, "http://h.test", false)
	for _, argv := range [][]string{nil, {}, {""}} {
		if _, err := Command(argv); err == nil {
			t.Errorf("%q: no error", argv)
		}
	}
}

func TestCommandsThatFail(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"status":         {"echo first >&2; echo the last line >&2; exit 3", "exit status 3"},
		"no words":       {"exit 4", "exit status 4"},
		"token told":     {"echo no hunter2 here >&2; exit 3", "exit status 3"},
		"no token":       {":", "it printed nothing"},
		"two words":      {"echo hunter 2", "blanks"},
		"much":           {"yes hunter2 | tr -d '\\n' | head -c 1000000", "more than 16384 bytes"},
		"many words":     {"yes hunter3 | head -c 1000000 >&2; exit 5", "exit status 5"},
		"control":        {`printf 'a\033[31m\rb\n' >&2; exit 6`, "exit status 6"},
		"killed":         {"kill -9 $$", "killed"},
		"does not exist": {"exec /does/not/exist", "exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			text := wantUnavailable(t, must(t)(Command(shell(tt.script))))
			if strings.Contains(tt.want, "exit status") && !strings.HasSuffix(text, tt.want) {
				t.Errorf("there is more than the status in %.2000q", text)
			}
			if !strings.Contains(text, tt.want) || strings.Contains(text, "hunter2") || len(text) > 1000 {
				t.Errorf("got %.2000q, want %q", text, tt.want)
			}
		})
	}
	if text := wantUnavailable(t, must(t)(Command([]string{"/does/not/exist"}))); !strings.Contains(text, "no such file") {
		t.Error(text)
	}
}

func TestCommandIsGivenUp(t *testing.T) {
	s := must(t)(Command(shell("exec sleep 1000")))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
	if err := s.Authorize(ctx, request(t, "http://127.0.0.1/"), nil); !errors.Is(err, gone) {
		t.Error(err)
	}
}
