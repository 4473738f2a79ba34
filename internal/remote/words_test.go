package remote

import (
	"errors"
	"strings"
	"testing"
)

func TestWordsOfOthers(t *testing.T) {
	for text, want := range map[string]string{
		"plain, and ünï": "plain, and ünï", "a\x1b[31m\nb\u009b\u2028\u202e": "a [31m b   ",
		strings.Repeat("é", 10000): strings.Repeat("é", maxWords), "\xff": "\uFFFD",
	} {
		if got := words(errors.New(text)); got != want {
			t.Errorf("%.40q: %.40q", text, got)
		}
	}
	if got := words(nil); got != "" {
		t.Errorf("no error: %q", got)
	}
}
