package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/testroot"
	"github.com/exec-server/exec-server/internal/units"
)

func TestRulesInWords(t *testing.T) {
	port := func(first, last uint16) rules.Ports { return rules.Ports{First: first, Last: last} }
	for words, want := range map[string][]rules.Rule{
		"pypi.org":                   {{Allow: []string{"pypi.org"}}},
		" *.pypi.org  10.0.0.0/8\t*": {{Allow: []string{"*.pypi.org", "10.0.0.0/8", "*"}}},
		"a:443 b:443 c d:8000-8100/tcp": {
			{Allow: []string{"a", "b"}, Ports: []rules.Ports{port(443, 443)}}, {Allow: []string{"c"}},
			{Allow: []string{"d"}, Ports: []rules.Ports{port(8000, 8100)}, Protocols: []rules.Protocol{rules.TCP}},
		},
	} {
		got, err := parseRules(words, false)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v", words, got, err)
		}
		shown := ""
		for _, r := range got {
			shown += strings.TrimPrefix(r.String(), "allow ") + " "
		}
		// What is shown can be said again.
		if again, err := parseRules(shown, false); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q is shown as %q, which is %+v, %v", words, shown, again, err)
		}
	}
	if got, err := parseRules("a b:1", true); err != nil || len(got) != 2 || got[0].Deny[0] != "a" || got[1].Deny[0] != "b" || len(got[0].Allow) > 0 {
		t.Errorf("denied it is %+v, %v", got, err)
	}
	for words, says := range map[string]string{"": "names nothing", " ": "names nothing", "a x:0": `"x:0": "0" is neither a port`} {
		if r, err := parseRules(words, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %+v, %v", words, r, err)
		}
	}
}

func TestAPolicyIsEdited(t *testing.T) {
	allow := func(name string) rules.Rule { return rules.Rule{Allow: []string{name}} }
	now := rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("a"), allow("b"), allow("c")}}
	profile := rules.Policy{Mode: rules.Open, Rules: []rules.Rule{allow("p")}}
	for name, tt := range map[string]struct {
		edit control.EditPolicy
		want string
	}{
		"nothing":             {control.EditPolicy{}, "rules a b c"},
		"mode":                {control.EditPolicy{Mode: rules.None}, "none a b c"},
		"add":                 {control.EditPolicy{Add: []rules.Rule{allow("d")}}, "rules a b c d"},
		"remove":              {control.EditPolicy{Remove: []int{2, 0, 2}}, "rules b"},
		"remove and add":      {control.EditPolicy{Remove: []int{1}, Add: []rules.Rule{allow("d")}}, "rules a c d"},
		"reset":               {control.EditPolicy{Reset: true}, "open p"},
		"reset and more":      {control.EditPolicy{Reset: true, Remove: []int{0}, Mode: rules.Rules}, "rules"},
		"whole":               {control.EditPolicy{Whole: &rules.Policy{Mode: rules.Rules}}, "rules"},
		"no such rule":        {control.EditPolicy{Remove: []int{3}}, "there is no rule 4"},
		"no such rule either": {control.EditPolicy{Remove: []int{-1}}, "there is no rule 0"},
	} {
		p, err := edited(now, profile, tt.edit)
		got := string(p.Mode)
		for _, r := range p.Rules {
			got += " " + r.Allow[0]
		}
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, and not %s", name, got, tt.want)
		}
	}
	if len(now.Rules) != 3 || now.Rules[1].Allow[0] != "b" || len(profile.Rules) != 1 {
		t.Errorf("what was edited has changed: %+v, %+v", now, profile)
	}
}

func TestAPolicyIsShown(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := control.Policy{
		Name: "box", Profile: "default", Running: true, Known: true,
		Policy: rules.Policy{
			Mode: rules.Rules, Intercept: true, Limits: rules.Limits{BytesPerSecond: 1 << 20, Bytes: 1 << 30, Connections: 9},
			Rules: []rules.Rule{
				{Allow: []string{"a.example", "*.b.example"}, Ports: []rules.Ports{{First: 443, Last: 443}}},
				{Deny: []string{"10.0.0.0/8"}},
			},
		},
		Stats: &network.Stats{
			Total: network.Count{Allowed: 3, Denied: 2, In: 10, Out: 20}, Open: 1, Lookups: 5, FailedLookups: 6, Used: 1 << 28,
			Denied:  map[rules.Reason]uint64{rules.ByMode: 1, rules.ByRule: 1},
			Names:   map[string]network.Count{"b": {Denied: 2}, "a": {Allowed: 3, In: 10, Out: 20}},
			Denials: []network.Denial{{At: at, What: "tcp 10.0.0.1:22", Reason: rules.ByRule, Rule: 1}, {At: at, What: "lookup x\x1b[2J", Reason: rules.ByMode, Rule: -1}, {At: at, What: "tcp 1.1.1.1:443", Reason: rules.NoName, Rule: 0}},
		},
	}
	var out strings.Builder
	if err := showPolicy(&out, p, at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := `environment  box (running)
profile      default
mode         rules
intercept    yes
limit        1MiB a second in each direction
limit        1GiB in all, 268435456 bytes (25%) of it used
limit        9 connections at a time
rule 1       allow a.example:443 *.b.example:443
rule 2       deny 10.0.0.0/8
traffic      3 allowed, 2 denied, 1 open, 5 lookups, 10 bytes in, 20 bytes out
lookups      6 failed: no name server has answered
denied       1 by mode
denied       1 by rule
last denied  tcp 10.0.0.1:22: rule 2 (1m ago)
last denied  lookup x [2J: mode (1m ago)
last denied  tcp 1.1.1.1:443: no-name (rule 1, 1m ago)

NAME  ALLOWED  DENIED  BYTES IN  BYTES OUT
a     3        0       10        20
b     0        2       0         0
`
	if out.String() != want {
		t.Errorf("it is\n%s and not\n%s", out.String(), want)
	}
	for known, state := range map[bool]string{
		true: "not running: this is what its next container begins with", false: "there is no environment of that name yet: this is what it would begin with",
	} {
		out.Reset()
		if err := showPolicy(&out, control.Policy{Name: "box", Profile: "p", Known: known, Policy: rules.Policy{Mode: rules.None}}, at); err != nil {
			t.Fatal(err)
		}
		if want := "environment  box (" + state + ")\nprofile      p\nmode         none\nlimit        1024 connections at a time\n"; out.String() != want {
			t.Errorf("it is\n%s and not\n%s", out.String(), want)
		}
	}
}

func TestTheVolumeIsShown(t *testing.T) {
	for want, s := range map[string]*network.Stats{
		"1GiB in all":                                    nil,
		"1GiB in all, 0 bytes (0%) of it used":           {},
		"1GiB in all, which are used up: nothing passes": {Used: 1 << 30},
	} {
		if got := limitTexts(rules.Limits{Bytes: 1 << 30}, s); len(got) != 2 || got[0] != want {
			t.Errorf("%q, and not %q", got, want)
		}
	}
	if got := limitTexts(rules.Limits{}, &network.Stats{Used: 5}); len(got) != 1 || got[0] != "1024 connections at a time" {
		t.Errorf("without a limit it is %q", got)
	}
}

// What the flags of set say.
func TestAnEditInFlags(t *testing.T) {
	n := func(s string) *units.Size {
		var size units.Size
		if err := size.UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
		return &size
	}
	set := policySetCmd{Remove: []int{2}, Bandwidth: n("10MiB"), Volume: n("0"), Connections: new(5), ConnectionRate: new(0)}
	e, err := set.edit("box", nil)
	want := control.EditPolicy{Name: "box", Remove: []int{1}, Bandwidth: new(int64(10 << 20)), Volume: new(int64(0)), Connections: new(5), ConnectionRate: new(0)}
	if err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("%+v, %v", e, err)
	}
	before := rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: []string{"a"}}, {Allow: []string{"b"}}}, Limits: rules.Limits{BytesPerSecond: 1, Bytes: 2, Connections: 3, ConnectionsPerSecond: 4}}
	p, err := edited(before, rules.Policy{}, e)
	if limits := (rules.Limits{BytesPerSecond: 10 << 20, Connections: 5}); err != nil || p.Limits != limits || len(p.Rules) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = edited(before, rules.Policy{}, control.EditPolicy{}); err != nil || p.Limits != before.Limits {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestWhatIsWrongWithAnEdit(t *testing.T) {
	bare(t)
	file := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(file, []byte(`{"mode":"rules","rule":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		says   string
		args   []string
		status int
	}{
		{"nothing to change is given", []string{"set"}, 2},
		{`--allow: "" names nothing`, []string{"set", "--allow", ""}, 2},
		{"--deny: \"x:y\": ", []string{"set", "--deny", "x:y"}, 2},
		{`--mode must be one of "none","rules","open" but`, []string{"set", "--mode", "all"}, 2},
		{"can't be used together", []string{"set", "--reset", "--from", "x"}, 2},
		{`--volume: "10MB" is no size`, []string{"set", "--volume", "10MB"}, 2},
		{"--connections", []string{"set", "--connections", "many"}, 2},
		{"no exec-server is running for", []string{"set", "--volume", "10MiB", "--connections", "0"}, 1},
		{"no such file", []string{"set", "--from", file + "x"}, 1},
		{"unknown field \"rule\"", []string{"set", "--from", file}, 1},
		{"cannot be used more than once", []string{"set", "--mode", "none", "--mode", "open"}, 2},
		{"expected \"<target>\"", []string{"explain"}, 2},
		{`explain "github.com" has no port; write HOST:PORT, as in github.com:443`, []string{"explain", "github.com"}, 2},
		{`"bad_name!" is neither a name nor an address`, []string{"explain", "bad_name!:443"}, 2},
		{"no exec-server is running for", []string{"explain", "example.org:443"}, 1},
		{"no exec-server is running for", []string{"explain", "example.org", "--protocol", "icmp"}, 1},
		{"no exec-server is running for", []string{}, 1},
		{"; with --runtime host there is no network policy", []string{}, 1},
		{"box has no network policy: with --runtime host", []string{"set", "--mode", "none", "--runtime", "host"}, 1},
		{"box has no network policy: with --runtime host", []string{"explain", "a:1", "--runtime", "host"}, 1},
		{"no exec-server is running for", []string{"--json"}, 1},
	} {
		root := t.TempDir()
		if _, err := exec(t, tt.status, "", append([]string{"--root", root, "env", "policy", "box"}, tt.args...)...); !strings.Contains(err, tt.says) {
			t.Errorf("%s says %q, and not %q", tt.args, err, tt.says)
		}
	}
}

// A server without containers need not be asked.
func TestTheHostHasNoPolicyToAskFor(t *testing.T) {
	bare(t)
	root := t.TempDir()
	if out, _ := exec(t, 0, "", "--root", root, "--runtime", "host", "env", "policy", "box"); !strings.HasPrefix(out, "box has no network policy: with --runtime host") {
		t.Errorf("it is %q", out)
	}
	if out, _ := exec(t, 0, "", "--root", root, "--runtime", "host", "env", "policy", "box", "--json"); !strings.Contains(out, `"unconfined": true`) {
		t.Errorf("as JSON it is %q", out)
	}
}

// Without containers there is nothing that could enforce one.
func TestTheHostHasNoPolicy(t *testing.T) {
	testroot.Need(t) // for the control socket
	bare(t)
	root := t.TempDir()
	config := filepath.Join(root, "config.toml")
	if err := os.WriteFile(config, []byte("version = 1\n[listen]\nurl = \"none\"\n[profile.default.network]\nmode = \"rules\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--config", config, "--root", root, "--runtime", "host")
	eventually(t, root, "")
	for _, tt := range []struct {
		status int
		args   []string
	}{{0, nil}, {1, []string{"set", "--mode", "open"}}, {1, []string{"explain", "example.org:443"}}} {
		out, err := exec(t, tt.status, "", append([]string{"--root", root, "env", "policy", "box"}, tt.args...)...)
		if !strings.Contains(out+err, "box has no network policy: with --runtime host") {
			t.Errorf("%s says %q, %q", tt.args, out, err)
		}
	}
	if _, err := exec(t, 1, "", "--root", root, "env", "policy", "../x"); !strings.Contains(err, "is no name of an environment") {
		t.Errorf("a bad name: %q", err)
	}
	p.stop()
	p.ends(0)
	if got := p.err.String(); !strings.Contains(got, "whatever the profile says") {
		t.Errorf("the log is %s", got)
	}
}
