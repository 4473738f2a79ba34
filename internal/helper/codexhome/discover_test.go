package codexhome

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const frontMatterOf = "---\nname: NAME\ndescription: d\n---\nbody\n"

func matter(name string) string { return strings.ReplaceAll(frontMatterOf, "NAME", name) }

func discover(t *testing.T, dir string) *Discovery {
	t.Helper()
	d, err := Discover(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSkillsAndTheirOrder(t *testing.T) {
	dir := tree(t, map[string]string{
		".codex/skills/a/SKILL.md": matter("a"), ".codex/skills/a/z/SKILL.md": matter("az"), ".codex/skills/a-b/SKILL.md": matter("ab"),
		".codex/skills/SKILL.md": matter("root"), ".codex/skills/.hidden/SKILL.md": matter("hid"),
		".codex/skills/1/2/3/4/5/6/SKILL.md": matter("six"), ".codex/skills/1/2/3/4/5/6/7/SKILL.md": matter("seven"),
		".codex/skills/lower/skill.md": matter("low"), "target/SKILL.md": matter("linked"), ".codex/skills/file/x": "",
		".agents/skills/u/SKILL.md": matter("user"), "work/.codex/skills/w/SKILL.md": matter("w"),
	})
	link(t, dir+"/target", dir+"/.codex/skills/link")
	link(t, dir+"/target/SKILL.md", dir+"/.codex/skills/file/SKILL.md")
	link(t, dir+"/.codex/skills", dir+"/.codex/skills/loop")
	if err := unix.Mkfifo(dir+"/.codex/skills/file/agents", 0o600); err != nil {
		t.Fatal(err)
	}
	d := discover(t, dir)
	var got []string
	for _, s := range d.Skills {
		got = append(got, s.Name+" "+s.DiscoveryRoot.ID)
	}
	want := "hid codex-home-skills, six codex-home-skills, root codex-home-skills, ab codex-home-skills, a codex-home-skills, az codex-home-skills, linked codex-home-skills, user user-agent-skills"
	if strings.Join(got, ", ") != want || len(d.Warnings) > 0 || len(d.Plugins) > 0 {
		t.Errorf("\n got %s, %v\nwant %s", strings.Join(got, ", "), d.Warnings, want)
	}
	text, err := json.Marshal(discover(t, tree(t, nil)))
	if err != nil || string(text) != `{"plugins":[],"skills":[],"warnings":[]}` {
		t.Errorf("nothing is %s, %v", text, err)
	}
}

// Each is what the reference made of it; "" is refused with a warning.
func TestFrontMatter(t *testing.T) {
	for matter, want := range map[string]string{
		"name: aa\ndescription: d\n":      "aa|d|",
		"description: d\n":                "dir|d|",
		"name: x\n":                       "",
		"name: x\ndescription: \"\"\n":    "",
		"name: [\n":                       "",
		"name: [a]\ndescription: d\n":     "",
		"name: null\ndescription: true\n": "null|true|",
		"name: 5\ndescription: 6\n":       "5|6|",
		"name: \"  sp  ace \"\ndescription: |\n  line1\n  line2\n":          "sp ace|line1 line2|",
		"name: s\ndescription: d\nmetadata:\n  short-description: ' s  d '": "s|d|s d",
		"name: s\ndescription: d\nmetadata: x\n":                            "",
		"name: a\nname: b\ndescription: d\n":                                "",
		"name: &a anc\ndescription: *a\n":                                   "anc|anc|",
		"name: a\ndescription: has: colon\n":                                "a|has: colon|",
		"name: a\ndescription: it's: ok\n":                                  "a|it's: ok|",
		"name: a\ndescription: {x} y\n":                                     "a|{x} y|",
		"name: a\ndescription: @x\n":                                        "a|@x|",
		"name: a\ndescription: *x\n":                                        "",
		"name: a\ndescription: - x\n":                                       "",
		"name: a\ndescription: x: #y\n":                                     "",
		"name: a: b\ndescription: \"x\": y\n":                               "",
		"name: a # c\ndescription: d\nhint: [a]: b\n":                       "a|d|",
		"name: " + strings.Repeat("é", 64) + "\ndescription: d\n":           strings.Repeat("é", 64) + "|d|",
		"name: " + strings.Repeat("n", 65) + "\ndescription: d\n":           "",
	} {
		s, err := parseSkill("---\n"+matter+"\n---\nbody", "dir")
		got := ""
		if err == nil {
			got = s.Name + "|" + s.Description + "|"
			if s.ShortDescription != nil {
				got += *s.ShortDescription
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%v)", matter, got, want, err)
		}
	}
	for text, want := range map[string]bool{
		"--- \nname: a\ndescription: d\n---  \n": true, "---\r\nname: a\r\ndescription: d\r\n---\r\n": true,
		"\n---\nname: a\ndescription: d\n---\n": false, "\ufeff---\nname: a\ndescription: d\n---\n": false,
		"---\nname: a\ndescription: d\n": false, "---\n---\n": false, "hello\n": false, "": false,
	} {
		if _, err := parseSkill(text, "dir"); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	for text, want := range map[string]string{
		"":             "null null",
		"policy: {}\n": `null {"allowImplicitInvocation":null,"products":[]}`,
		"policy:\n  allow_implicit_invocation: true\n  products: [codex, CHATGPT, atlas]\n": `null {"allowImplicitInvocation":true,"products":["codex","chatgpt","atlas"]}`,
		"policy:\n  products: [nonsense]\n":                                                 "null null",
		"policy:\n  allow_implicit_invocation: \"no\"\n":                                    "null null",
		"policy: null\ndependencies: null\n":                                                "null null",
		"dependencies:\n  tools: []\n":                                                      "null null",
		"dependencies:\n  tools: x\n":                                                       "null null",
		"dependencies:\n  tools:\n  - str\n":                                                "null null",
		"bad: [\n":                                                                          "null null",
		"- list\n":                                                                          "null null",
		"dependencies:\n  tools:\n  - type: mcp\n    value: v\n    description: ' dd '\n    transport: t\n    command: c\n    url: 5\n    oauth: {callback_port: 77}\n  - type: mcp\n  - {type: '', value: y}\n  - {type: " + strings.Repeat("t", 65) + ", value: y}\n": `{"tools":[{"type":"mcp","value":"v","description":"dd","transport":"t","command":"c","url":"5","oauthCallbackPort":77}]} null`,
	} {
		deps, policy := parseMetadata(text)
		a, _ := json.Marshal(deps)
		b, _ := json.Marshal(policy)
		if got := string(a) + " " + string(b); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A small document of aliases would be a large one if they were expanded.
func TestAliasesAreNotExpanded(t *testing.T) {
	text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		name := string(rune('b' + i%25))
		text += name + name + ": &" + name + " [*a,*a,*a,*a,*a,*a,*a,*a]\na" + strings.Repeat("a", i+1) + ": &a [*" + name + ",*" + name + "]\n"
	}
	if _, err := parseSkill("---\n"+text+"name: n\ndescription: d\n---\n", "dir"); err != nil {
		t.Log(err) // either way it ends
	}
}

func TestPlugins(t *testing.T) {
	const m = "/.codex-plugin/plugin.json"
	dir := tree(t, map[string]string{
		"b/a/1" + m: `{"name":"x"}`, "a/z/1.9.0" + m: `{"name":"old"}`, "a/z/1.10.0" + m: `{"name":"new"}`, "a/z/1.10.0-rc.1" + m: `{"name":"rc"}`,
		"a/l/local" + m: `{"name":"l"}`, "a/l/9.0.0" + m: `{"name":"no"}`, "a/Bad!/1" + m: `{"name":"no"}`, ".a/x/1" + m: `{"name":"no"}`, "a/v/1~0" + m: `{"name":"no"}`,
		"a/full/1" + m: `{"name":"full","mcpServers":"./m.json","apps":"./d/a.json","interface":{"displayName":"Full One"},"skills":5}`, "a/full/1/m.json": "{}", "a/full/1/d/a.json": "[]",
		"a/full/1/any/where/SKILL.md": matter("s"), "a/full/1/inner/.claude-plugin/plugin.json": `{"name":"inner"}`, "a/full/1/inner/SKILL.md": matter("s"),
		"a/full/.codex-remote-plugin-install.json": `{"schema_version":1,"remote_plugin_id":"RID"}`,
		"a/dflt/1/.claude-plugin/plugin.json":      `{"name":"  "}`, "a/dflt/1/.mcp.json": "not json", "a/dflt/1/.app.json": "",
		"a/inline/1" + m: `{"name":"inline","mcpServers":{"a": {"command":"x"}}}`, "a/inline/1/.mcp.json": "{}",
	}, "/.codex/plugins/cache/")
	d := discover(t, dir)
	var got []string
	for _, p := range d.Plugins {
		line := p.ID + " " + p.DisplayName + " " + p.Version
		if p.RemotePluginID != nil {
			line += " remote " + *p.RemotePluginID
		}
		for _, f := range []*File{p.Files.MCPConfig, p.Files.AppsConfig} {
			if f != nil {
				line += " " + strings.TrimPrefix(f.Path, p.Root) + "=" + f.Contents
			}
		}
		for _, s := range p.Skills {
			line += " " + s.Name
		}
		got = append(got, line)
	}
	want := []string{
		"a@b x 1", "dflt@a 1 1 /.mcp.json=not json /.app.json=", "full@a Full One 1 remote RID /m.json={} /d/a.json=[] full:s inner:s",
		`inline@a inline 1 /.codex-plugin/plugin.json={"a":{"command":"x"}}`, "l@a l local", "z@a new 1.10.0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(d.Warnings) > 0 {
		t.Errorf("\n got %q, %v\nwant %q", got, d.Warnings, want)
	}
}

// What cannot be used of a plugin is left out, and one warning says so.
func TestPluginsThatCannotBeUsed(t *testing.T) {
	const m = "1/.codex-plugin/plugin.json"
	for _, test := range []struct {
		files map[string]string
		there bool
	}{
		{map[string]string{"1/x": ""}, false},
		{map[string]string{m: "{"}, false},
		{map[string]string{m: "[]"}, false},
		{map[string]string{m: `{"name":5}`}, false},
		{map[string]string{m: `{"name":"a","name":"b"}`}, false},
		{map[string]string{m: `{"apps":{"a":1}}`}, false},
		{map[string]string{m: `{"interface":"x"}`}, false},
		{map[string]string{m: `{"x":"` + strings.Repeat("x", maxText) + `"}`}, false},
		{map[string]string{m: `{"mcpServers":"./none"}`}, true},
		{map[string]string{m: `{"mcpServers":"../x"}`}, true},
		{map[string]string{m: `{"apps":"./x/../y"}`, "1/y": ""}, true},
		{map[string]string{m: `{}`, "1/.mcp.json": "\xff"}, true},
		{map[string]string{m: `{}`, "1/.mcp.json/x": ""}, true},
		{map[string]string{m: `{}`, "1/SKILL.md": "none"}, true},
		{map[string]string{m: `{}`, "1/SKILL.md": "---\nname: " + strings.Repeat("n", 60) + "\ndescription: d\n---\n", "1/x/y": strings.Repeat("x", 10), "1/a/SKILL.md": "x"}, true},
	} {
		dir := tree(t, test.files, "/.codex/plugins/cache/mk/p/")
		d := discover(t, dir)
		if (len(d.Plugins) == 1) != test.there || len(d.Warnings) != 1 || d.Warnings[0] != notLoaded {
			t.Errorf("%.80q: %d plugins, %q", test.files, len(d.Plugins), d.Warnings)
		}
	}
	dir := tree(t, map[string]string{m: `{}`, ".codex-remote-plugin-install.json": "{}"}, "/.codex/plugins/cache/mk/p/")
	if d := discover(t, dir); len(d.Plugins) != 1 || len(d.Warnings) != 1 || d.Warnings[0] != notResolved {
		t.Errorf("%+v", d)
	}
}

func TestVersions(t *testing.T) {
	order := []string{"0abc", "1.0", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-a", "1.0.0-a.1", "1.0.0", "1.0.0+a", "1.0.0+b", "1.9.0", "1.10.0", "local"}
	for i := range order {
		for j := 2; j < len(order); j++ { // the first two are compared as text
			if i < 2 {
				continue
			}
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := compareVersions(order[i], order[j]); got != want {
				t.Errorf("%s, %s: %d", order[i], order[j], got)
			}
		}
	}
	if compareVersions("1.0.0", "zeta") >= 0 || compareVersions("1.0.0", "0abc") <= 0 {
		t.Error("others are compared as text")
	}
}

func FuzzSkill(f *testing.F) {
	f.Add("name: a\ndescription: has: colon\n", "policy:\n  products: [codex]\n")
	f.Add("name: &a x\ndescription: *a\nmetadata: {short-description: s}\n", "dependencies: {tools: [{type: t, value: v, oauth: {callback_port: 1}}]}\n")
	f.Fuzz(func(t *testing.T, matter, meta string) {
		if s, err := parseSkill("---\n"+matter+"\n---\n", "dir"); err == nil {
			if s.Name == "" || s.Description == "" || strings.ContainsAny(s.Name+s.Description, "\n\t") {
				t.Errorf("%q: %+v", matter, s)
			}
		}
		deps, policy := parseMetadata(meta)
		if deps != nil && len(deps.Tools) == 0 || policy != nil && policy.Products == nil {
			t.Errorf("%q: %v, %v", meta, deps, policy)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add(`{"name":"a","mcpServers":{"b":[1, 2]},"apps":"./x","interface":{"displayName":"d"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseManifest(text)
		if err == nil && m.inlineMCP != "" && !json.Valid([]byte(m.inlineMCP)) {
			t.Errorf("%q: %q", text, m.inlineMCP)
		}
	})
}
