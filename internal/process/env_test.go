package process

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestPatternsMatchWholeNames(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "A", false}, {"*", "", true}, {"*", "ANY", true}, {"**", "ANY", true},
		{"A", "A", true}, {"A", "AB", false}, {"A", "BA", false}, {"a", "A", true}, {"A", "a", true},
		{"?", "A", true}, {"?", "", false}, {"?", "AB", false}, {"A?C", "ABC", true}, {"A?C", "AC", false},
		{"*KEY*", "KEY", true}, {"*KEY*", "API_KEY_ID", true}, {"*KEY*", "MONKEY", true}, {"*KEY*", "KE", false},
		{"*KEY", "KEYKEY", true}, {"*KEY", "KEYS", false}, {"A*B*C", "AxBxBC", true}, {"A*B*C", "AxBxBx", false},
		{"*A?", "AAB", true}, {"*?*", "", false}, {"a.c", "ABC", false}, {"[A]", "A", false},
		{strings.Repeat("*A", 50) + "*B", strings.Repeat("A", 5000), false},
	} {
		if got := matchesAny([]string{test.pattern}, test.name); got != test.want {
			t.Errorf("%.40q matches %.40q: %v", test.pattern, test.name, got)
		}
	}
}

func TestEnvironmentPolicy(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/root", "LANG=C", "EDITOR=vi", "API_KEY=k", "my_token=t", "Secret=s", "EMPTY=", "EQ=a=b", "LC_ALL=x", "LC_TIME=y"}
	all := "API_KEY=k EDITOR=vi EMPTY= EQ=a=b HOME=/root LANG=C LC_ALL=x LC_TIME=y PATH=/bin Secret=s my_token=t"
	for _, test := range []struct {
		name   string
		policy *EnvPolicy
		env    map[string]string
		want   string
	}{
		{"none", nil, map[string]string{"A": "1"}, "A=1"},
		{"none and nothing", nil, nil, ""},
		{"all", &EnvPolicy{Inherit: "all", IgnoreDefaultExcludes: true}, nil, all},
		{"all without secrets", &EnvPolicy{Inherit: "all"}, nil, "EDITOR=vi EMPTY= EQ=a=b HOME=/root LANG=C LC_ALL=x LC_TIME=y PATH=/bin"},
		{"core", &EnvPolicy{Inherit: "core"}, nil, "HOME=/root LANG=C LC_ALL=x PATH=/bin"},
		{"nothing", &EnvPolicy{Inherit: "none"}, nil, ""},
		{"exclude", &EnvPolicy{Inherit: "all", Exclude: []string{"lc_*", "E?"}}, nil, "EDITOR=vi EMPTY= HOME=/root LANG=C PATH=/bin"},
		{"set passes excludes", &EnvPolicy{Inherit: "core", Exclude: []string{"*"}, Set: map[string]string{"A_KEY": "1"}}, nil, "A_KEY=1"},
		{"set overrides", &EnvPolicy{Inherit: "core", Set: map[string]string{"LANG": "D"}}, nil, "HOME=/root LANG=D LC_ALL=x PATH=/bin"},
		{"include only", &EnvPolicy{Inherit: "all", IncludeOnly: []string{"path", "E*"}}, nil, "EDITOR=vi EMPTY= EQ=a=b PATH=/bin"},
		{"include only filters set", &EnvPolicy{Inherit: "none", Set: map[string]string{"A": "1", "B": "2"}, IncludeOnly: []string{"B"}}, nil, "B=2"},
		{"env is not filtered", &EnvPolicy{Inherit: "all", Exclude: []string{"*"}, IncludeOnly: []string{"X"}}, map[string]string{"API_KEY": "mine"}, "API_KEY=mine"},
		{"env wins", &EnvPolicy{Inherit: "core", Set: map[string]string{"LANG": "D"}}, map[string]string{"LANG": "E"}, "HOME=/root LANG=E LC_ALL=x PATH=/bin"},
	} {
		got := test.policy.Apply(own, test.env)
		names := slices.Sorted(maps.Keys(got))
		for i, name := range names {
			names[i] = name + "=" + got[name]
		}
		if s := strings.Join(names, " "); s != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, s, test.want)
		}
	}
}

func TestTheEnvironmentOfACommandIsExact(t *testing.T) {
	t.Setenv("LEAKED", "yes")
	spec := Spec{ID: "p", Argv: []string{"/usr/bin/env"}, Cwd: "/", Env: map[string]string{"B": "2", "A": "x\ny=z", "É": ""}}
	if got, want := prints(t, spec), "A=x\ny=z\nB=2\nÉ=\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
