package secret

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSecretsDoNotPrint(t *testing.T) {
	s := New("hunter2")
	holder := struct {
		S Secret
		P *Secret
	}{s, &s}
	j, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(s, holder, string(j), s.String(), fmt.Errorf("x %s", s))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T%v"} {
		all += fmt.Sprintf(verb, holder) + fmt.Sprintf(verb, s)
	}
	for _, form := range []string{"hunter2", "68756e74657232", "68756E74657232"} {
		if strings.Contains(all, form) {
			t.Errorf("%q is in %s", form, all)
		}
	}
	if s.Reveal() != "hunter2" {
		t.Error("the secret is lost")
	}
}

func TestWhatCanBeASecret(t *testing.T) {
	for text, want := range map[string]struct{ token, line bool }{
		"tok":                      {true, true},
		"a b":                      {false, true},
		"pässword":                 {false, true},
		"":                         {},
		"a\r\nb: c":                {},
		"a\x00":                    {},
		"a\x7f":                    {},
		strings.Repeat("x", Max):   {true, true},
		strings.Repeat("x", Max+1): {},
	} {
		a, errA := Token(text)
		b, errB := Line(text)
		if (errA == nil) != want.token || (errB == nil) != want.line {
			t.Errorf("%.20q: %v, %v", text, errA, errB)
		}
		if errA == nil && a.Reveal() != text || errB == nil && b.Reveal() != text {
			t.Errorf("%.20q became another", text)
		}
	}
}
