package snapshot

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/process"
)

func TestParseDump(t *testing.T) {
	for _, c := range []struct {
		out    string
		fields []string
		env    map[string]string
	}{
		{"noise\x00M\x00a\x00b\n\x00M\x00A=1\x00B=x=y\x00\x00M\x00more", []string{"a", "b\n"}, map[string]string{"A": "1", "B": "x=y"}},
		{"\x00M\x00\x00M\x00\x00M\x00", []string{""}, map[string]string{}},
		{"\x00M\x00x\x00M\x00A=\nM\x00=v\x00novalue\x00\x00M\x00", []string{"x"}, map[string]string{"A": "\nM"}},
		{"", nil, nil}, {"\x00M\x00x", nil, nil}, {"\x00M\x00x\x00M\x00A=1\x00", nil, nil}, {"M", nil, nil}, {"x\x00M\x00y\x00N\x00z\x00M\x00", nil, nil},
	} {
		fields, env, ok := parseDump(c.out, "M")
		if ok != (c.env != nil) || !slices.Equal(fields, c.fields) || !maps.Equal(env, c.env) {
			t.Errorf("%q: %q, %q, %v", c.out, fields, env, ok)
		}
	}
}

func TestWhichCommandsSuit(t *testing.T) {
	w := Wish{Scope: "s", Name: "bash", Path: "/bin/bash"}
	for _, c := range []struct {
		wish Wish
		spec process.Spec
		want bool
	}{
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "true"}}, true},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "true", "name", "arg"}}, true},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", ""}}, true},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc"}}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "-x"}}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-c", "true"}}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-l", "-c", "true"}}, false},
		{w, process.Spec{Argv: []string{"/bin/sh", "-lc", "true"}}, false},
		{w, process.Spec{Argv: []string{"bash", "-lc", "true"}}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "true"}, HasArg0: true, Arg0: "sh"}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "true"}, Env: map[string]string{"BASH_ENV": ""}}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "true"}, Env: map[string]string{"POSIXLY_CORRECT": "y"}}, false},
		{w, process.Spec{Argv: []string{"/bin/bash", "-lc", "true"}, Env: map[string]string{"ENV": "y"}}, true},
		{Wish{Name: "bash", Path: "bash"}, process.Spec{Argv: []string{"bash", "-lc", "true"}}, false},
		{Wish{Name: "fish", Path: "/bin/fish"}, process.Spec{Argv: []string{"/bin/fish", "-lc", "true"}}, false},
		{Wish{Name: "zsh", Path: "/bin/zsh"}, process.Spec{Argv: []string{"/bin/zsh", "-lc", "true"}}, true},
		{Wish{Name: "sh", Path: "/bin/sh"}, process.Spec{Argv: []string{"/bin/sh", "-lc", "true"}}, true},
	} {
		if got := c.wish.suits(&c.spec); got != c.want {
			t.Errorf("%+v, %q %q: %v", c.wish, c.spec.Argv, c.spec.Env, got)
		}
	}
}

func TestKeys(t *testing.T) {
	base := process.Spec{Cwd: "/a", Env: map[string]string{"HOME": "/h", "X": "1"}}
	w := Wish{Scope: "s", Name: "sh", Path: "/bin/sh"}
	same := base
	same.Env = map[string]string{"HOME": "/h", "X": "2"}
	if w.key(&base) != w.key(&same) {
		t.Error("any variable counts")
	}
	seen := map[string]string{}
	note := func(what, key string) {
		if other, has := seen[key]; has {
			t.Errorf("%s is the same as %s", what, other)
		}
		seen[key] = what
	}
	note("base", w.key(&base))
	cwd, home := base, base
	cwd.Cwd, home.Env = "/b", map[string]string{"HOME": "/i"}
	note("cwd", w.key(&cwd))
	note("home", w.key(&home))
	for i, other := range []Wish{
		{Scope: "t", Name: "sh", Path: "/bin/sh"}, {Scope: "s", Name: "bash", Path: "/bin/sh"}, {Scope: "s", Name: "sh", Path: "/bin/dash"},
		{Scope: "s", Name: "sh", Path: "/bin/sh", Policy: &process.EnvPolicy{}},
		{Scope: "s", Name: "sh", Path: "/bin/sh", Policy: &process.EnvPolicy{Set: map[string]string{"A": "1"}}},
		{Scope: "s", Name: "sh", Path: "/bin/sh", Policy: &process.EnvPolicy{Exclude: []string{"A"}}},
	} {
		note(fmt.Sprint(i), other.key(&base))
	}
}

func TestRestoreVariable(t *testing.T) {
	for text, want := range map[string]string{
		"declare -- Y=\"2\"\n":                 "[[ ${Y+x} ]] || declare -- Y=\"2\"\n",
		"declare -a A=([0]=\"1\")\n":           "[[ ${A+x} ]] || declare -a A=([0]=\"1\")\n",
		"declare -r RO\n":                      "[[ ${RO+x} ]] || declare -r RO\n",
		"declare -- IFS=$' \\t\\n'\n":          "",
		"declare -- PS4=\"+\"\n":               "declare -- PS4=\"+\"\n",
		"declare -x X=\"1\"\n":                 "", // is in the environment
		"declare -rx X=\"1\"\n":                "",
		"declare -- TERM=\"dumb\"\n":           "",
		"declare -ir UID=\"0\"\n":              "",
		"declare -a BASH_ARGV=()\n":            "",
		"declare -- " + newMark() + "name=x\n": "",
		"":                                     "", "\n": "", "nonsense\n": "", "declare -": "", "declare -- ": "",
	} {
		if got := restoreVariable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestQuotedLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"a='b'\nc='d'\n":                {"a='b'", "c='d'"},
		"a='b\nc'\nd='e'":               {"a='b\nc'", "d='e'"},
		"a='it'\"'\"'s\nx'\nb='\"\n'\n": {"a='it'\"'\"'s\nx'", "b='\"\n'"},
		"a=\"x\\\"\ny\"\nb=\\'\nc\n":    {"a=\"x\\\"\ny\"", "b=\\'", "c"},
		"a='\\'\nb\n\n":                 {"a='\\'", "b"},
	} {
		if got := quotedLines(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "a b", "it's", "''", "$x `y` \\ \"z\"\n!"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is read as %q, %v", text, out, err)
		}
	}
}

// A dump comes from start-up files, which may print whatever they like.
func FuzzRestore(f *testing.F) {
	f.Add("\x00M\x00shopt -s a\nshopt -u b\n\x00set -o c\nset +o d\n\x00f () {\n}\n\x00declare -fx f\n\x00alias a='b'\n\x00declare -- Y=\"2\"\n\x00M\x00A=1\x00\x00M\x00")
	f.Add("\x00M\x00set +o x\n\x00\x00a='b\nc'\x00M\x00\x00M\x00")
	f.Add("\x00M\x00a on\nkshoptionprint on\n\x00a off\n\x00f\x00alias\x00fpath=()\x00typeset X=1\x00M\x00\x00M\x00")
	f.Fuzz(func(t *testing.T, out string) {
		fields, env, ok := parseDump(out, "M")
		if !ok {
			return
		}
		for name, value := range env {
			if name == "" || strings.ContainsAny(name, "\x00=") || strings.Contains(value, "\x00") {
				t.Errorf("%q=%q", name, value)
			}
		}
		for name, kind := range shells {
			script, _, ok := kind.restore(fields, env)
			if ok && !strings.HasPrefix(script, firstLine) {
				t.Errorf("%s: %q", name, script)
			}
			if len(script) > 8*len(out)+1024 {
				t.Errorf("%s makes %d bytes of %d", name, len(script), len(out))
			}
		}
	})
}
