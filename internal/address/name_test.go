package address

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for s, want := range map[string]string{"PyPI.org.": "pypi.org", "a_b-c": "a_b-c", "xn--bcher-kva.example": "xn--bcher-kva.example", "1.a": "1.a"} {
		if got, ok := Name(s); !ok || got != want {
			t.Errorf("%q is %q, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", ".", "a..b", ".a", "a b", "a/b", "a:1", "é", "1.2.3.4", "1", "a.0x1f", "[::1]", "::1", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a"} {
		if got, ok := Name(s); ok {
			t.Errorf("%q is %q", s, got)
		}
	}
}
