package broker

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	file, log := dir+"/token", dir+"/log"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s Secrets
	want := func(c rules.Credential, want string) {
		t.Helper()
		if got, err := s.Get(t.Context(), &c); err != nil || got.Reveal() != want {
			t.Errorf("%q, %v, want %q", got.Reveal(), err, want)
		}
	}
	fails := func(c rules.Credential, want string) {
		t.Helper()
		got, err := s.Get(t.Context(), &c)
		if err == nil || !got.IsZero() || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fromFile := rules.Credential{SecretFile: file}
	fails(fromFile, "no such file")
	write(" one \n")
	want(fromFile, "one")
	write("two words")
	want(fromFile, "two words")
	for _, bad := range []string{"", "\n", "hunter\x002", "hunter\r\n2", strings.Repeat("hunter", 4000)} {
		write(bad)
		fails(fromFile, file)
	}
	t.Setenv("THE_SECRET", " three ")
	want(rules.Credential{SecretEnv: "THE_SECRET"}, "three")
	t.Setenv("THE_SECRET", "")
	fails(rules.Credential{SecretEnv: "THE_SECRET"}, "THE_SECRET: it is empty")
	fails(rules.Credential{SecretEnv: "NO_SECRET_IS_HERE"}, "no variable NO_SECRET_IS_HERE")
	fails(rules.Credential{}, "no place")

	program := func(n int) rules.Credential {
		return rules.Credential{SecretCommand: []string{"/bin/sh", "-c", fmt.Sprintf("echo %d >> %s; echo four%d", n, log, n)}}
	}
	for range 3 {
		want(program(1), "four1")
		want(program(2), "four2")
	}
	if ran, err := os.ReadFile(log); err != nil || string(ran) != "1\n2\n" {
		t.Errorf("it ran for %q, %v", ran, err)
	}
	fails(rules.Credential{SecretCommand: []string{"/bin/sh", "-c", "echo hunter2; echo hunter2 >&2; exit 3"}}, "/bin/sh: exit status 3")
}
