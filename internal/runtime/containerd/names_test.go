package containerd

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z0-9]+(?:[._-](?:[A-Za-z0-9]+))*$`) // containerd's rule
	for _, name := range []string{"a", "A..b--", "x_" + strings.Repeat("y", 62), "tasks"} {
		if err := checkName(name); err != nil {
			t.Error(err)
		}
		if id := newID(name); !valid.MatchString(id) || len(id) > 76 {
			t.Errorf("%s has the id %s", name, id)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "-a", "_a", "ä", "a b", strings.Repeat("y", 65), "a\n"} {
		if checkName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
	for name, want := range map[string]string{
		"Web.App_1": "web-app-1", "a..": "a", strings.Repeat("y", 64): strings.Repeat("y", 63),
	} {
		if got := hostname(name); got != want {
			t.Errorf("the host's name of %s is %s", name, got)
		}
	}
	if got := instance("/run/exec-server/0123456789ab"); got != "0123456789ab" {
		t.Error(got)
	}
	if got := instance("/run/other"); !validInstance.MatchString(got) || got != instance("/run/other/") {
		t.Error(got)
	}
}

func TestOverlay(t *testing.T) {
	got := overlay([]string{"A=1", "B=2", "bad", "=x"}, []string{"B=", "C=x=y"})
	if want := []string{"A=1", "B=", "C=x=y"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestFreeRange(t *testing.T) {
	var taken []record
	for i := range uint32(4094) {
		ids, err := freeRange(taken)
		if err != nil || !ids.valid() || ids.base != idFirst+i*idCount {
			t.Fatalf("range %d begins with %d, %v", i, ids.base, err)
		}
		taken = append(taken, record{IDBase: ids.base})
	}
	if ids, err := freeRange(taken); err == nil {
		t.Errorf("there is one more range, from %d", ids.base)
	}
	if ids, err := freeRange(slices.Delete(taken, 5, 6)); err != nil || ids.base != idFirst+5*idCount {
		t.Errorf("the free range begins with %d, %v", ids.base, err)
	}
}

func TestRing(t *testing.T) {
	var r ring
	r.Write([]byte(strings.Repeat("x", 10000)))
	r.Write([]byte("\none\ntwo\x1b[31m\nthree\nfour\nfive\n"))
	if got, want := r.tail(), "one | two.[31m | three | four | five"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if len(r.buf) != ringSize {
		t.Errorf("it keeps %d bytes", len(r.buf))
	}
}
