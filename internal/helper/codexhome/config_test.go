package codexhome

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked reads a configuration and renders what came, with D for the directory.
func asked(t *testing.T, dir, cwd string, keys ...string) string {
	t.Helper()
	var paths [][]string
	for _, key := range keys {
		paths = append(paths, strings.Split(key, "."))
	}
	c, err := readConfig(filepath.Join(dir, "etc"), filepath.Join(dir, "home"), filepath.Join(dir, cwd), paths, paths)
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir, "D")
	}
	out := ""
	for i, l := range []Layers{c.Config, c.Requirements} {
		for _, layer := range l.Layers {
			out += fmt.Sprintf("%s|%s|%s;", layer.Source, layer.BaseDir, strings.ReplaceAll(layer.TOML, "\n", "/"))
		}
		out += fmt.Sprintf("%d", l.CloudInsertionIndex)
		if i == 0 {
			out += " "
		}
	}
	return strings.ReplaceAll(out, dir, "D")
}

func TestLayersAndTheirOrder(t *testing.T) {
	dir := tree(t, map[string]string{
		"home/.codex/config.toml":  "model = 'user'",
		"etc/config.toml":          "model = 'system'",
		"etc/managed_config.toml":  "model = 'managed'\nsandbox_mode = 'workspace-write'\napproval_policy = 'never'\napprovals_reviewer = 'user'",
		"etc/requirements.toml":    "allowed_approval_policies = ['on-request']",
		"home/.codex/other.config": "model = 'no'",
	})
	if got, want := asked(t, dir, "nowhere", "model", "allowed_approval_policies", "allowed_sandbox_modes", "allowed_approvals_reviewers"),
		`system (D/etc/config.toml)|file://D/etc|model = "system"/;`+
			`user (D/home/.codex/config.toml)|file://D/home/.codex|model = "user"/;`+
			`legacy managed_config.toml (D/etc/managed_config.toml)|file://D/etc|model = "managed"/;1 `+
			`D/etc/requirements.toml|file://D/etc|allowed_approval_policies = ["on-request"]/;`+
			`D/etc/managed_config.toml|file://D/etc|allowed_approval_policies = ["never"]/allowed_approvals_reviewers = ["user"]/allowed_sandbox_modes = ["read-only", "workspace-write"]/;1`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := asked(t, dir, "", "nothing"); got != "0 0" {
		t.Errorf("without the keys: %s", got)
	}
	if got := asked(t, tree(t, nil), "", "model"); got != "0 0" {
		t.Errorf("without files: %s", got)
	}
}

func TestConfigurationThatCannotBeRead(t *testing.T) {
	const failed = "failed to load executor-local config: "
	for _, test := range []struct{ file, text, want string }{
		{"home/.codex/config.toml", "a = 1\nmodel =\n", "D/home/.codex/config.toml:2:"},
		{"home/.codex/config.toml", "a = '\xff'", "Failed to read config file D/home/.codex/config.toml: invalid utf-8 sequence of 1 bytes from index 5"},
		{"etc/config.toml", "[", "D/etc/config.toml:1:"},
		{"etc/managed_config.toml", "[", "D/etc/managed_config.toml:1:"},
		{"etc/managed_config.toml", "sandbox_mode = 'x'", "Failed to parse config requirements as TOML: unknown variant `x`"},
		{"etc/managed_config.toml", "sandbox_mode = 5", "Failed to parse config requirements as TOML: invalid type"},
		{"etc/requirements.toml", "[", "failed to parse requirements layer D/etc/requirements.toml:1:"},
		{"home/.codex/config.toml/x", "", "Failed to read config file D/home/.codex/config.toml: path `D/home/.codex/config.toml` is not a file"},
		{"home/.codex/config.toml", "a = '" + strings.Repeat("x", maxConfig) + "'", "Failed to read config file D/home/.codex/config.toml: too large"},
		{"home/.codex/config.toml", "[projects.'/x']\ntrust_level = 'TRUSTED'", "unknown variant `TRUSTED`, expected `trusted` or `untrusted`"},
	} {
		dir := tree(t, map[string]string{test.file: test.text})
		if got := asked(t, dir, "", "model"); !strings.HasPrefix(got, failed+test.want) {
			t.Errorf("%s %.30q: %s", test.file, test.text, got)
		}
	}
}

func TestCodexHome(t *testing.T) {
	dir := tree(t, map[string]string{"real/config.toml": "model = 'm'", "home/x": ""})
	link(t, dir+"/real", dir+"/link")
	for _, test := range []struct{ env, want string }{
		{"", "0 0"},
		{dir + "/link", `user (D/real/config.toml)|file://D/real|model = "m"/;0 0`},
		{dir + "/none", `failed to find Codex home: CODEX_HOME points to "D/none", but that path does not exist`},
		{dir + "/home/x", `failed to find Codex home: CODEX_HOME points to "D/home/x", but that path is not a directory`},
	} {
		t.Setenv("CODEX_HOME", test.env)
		if got := asked(t, dir, "", "model"); got != test.want {
			t.Errorf("%s: %s", test.env, got)
		}
	}
}

// Whose configuration counts in D/p/sub/deep, by what the user trusts.
func TestProjectsHaveToBeTrusted(t *testing.T) {
	dir := tree(t, map[string]string{
		"p/.codex/config.toml": "model = 'p'\nprofile = 'x'\nnotify = ['x']\nmodel_providers = {}", "p/sub/.codex/config.toml": "model = 'sub'",
		"p/sub/deep/f": "", "p/.git/HEAD": "", "p/sub/marker": "", "bare/.codex/config.toml": "model = 'bare'", "bare/x/f": "",
		"home/.git/HEAD": "", "home/.codex/f": "",
	})
	link(t, dir+"/p", dir+"/link")
	both := `project (D/p/.codex/config.toml)|file://D/p/.codex|model = "p"/;project (D/p/sub/.codex/config.toml)|file://D/p/sub/.codex|model = "sub"/;0 0`
	p, sub := `project (D/p/.codex/config.toml)|file://D/p/.codex|model = "p"/;0 0`, `project (D/p/sub/.codex/config.toml)|file://D/p/sub/.codex|model = "sub"/;0 0`
	trust := func(dir, level string) string {
		return fmt.Sprintf("[projects.'D/%s']\ntrust_level = '%s'\n", dir, level)
	}
	for _, test := range []struct{ what, config, cwd, want string }{
		{"nothing", "", "p/sub/deep", "0 0"},
		{"root", trust("p", "trusted"), "p/sub/deep", both},
		{"cwd need not exist", trust("p", "trusted"), "p/sub/none/x", both},
		{"root, seen from it", trust("p", "trusted"), "p", p},
		{"one below", trust("p/sub", "trusted"), "p/sub/deep", sub},
		{"not what is above", trust("p/sub", "trusted"), "p", "0 0"},
		{"not one below", trust("p", "trusted") + trust("p/sub", "untrusted"), "p/sub/deep", p},
		{"explicitly not", trust("p", "untrusted"), "p/sub/deep", "0 0"},
		{"other spelling", trust("p/", "trusted"), "p", "0 0"},
		{"markers", "project_root_markers = ['marker']\n" + trust("p", "trusted"), "p/sub/deep", sub},
		{"no markers", "project_root_markers = []\n" + trust("p", "trusted"), "p/sub/deep", "0 0"},
		{"by its real name", trust("p", "trusted"), "link", `project (D/link/.codex/config.toml)|file://D/link/.codex|model = "p"/;0 0`},
		{"by the link's", trust("link", "trusted"), "link", `project (D/link/.codex/config.toml)|file://D/link/.codex|model = "p"/;0 0`},
		{"the link's name is no other's", trust("link", "trusted"), "p", "0 0"},
		{"no marker found", "project_root_markers = ['.no-such']\n" + trust("bare", "trusted"), "bare", `project (D/bare/.codex/config.toml)|file://D/bare/.codex|model = "bare"/;0 0`},
		{"no marker found, below", "project_root_markers = ['.no-such']\n" + trust("bare", "trusted"), "bare/x", "0 0"},
		{"the Codex home is no project's", trust("home", "trusted"), "home", "0 0"},
	} {
		grow(t, dir, map[string]string{"home/.codex/config.toml": strings.ReplaceAll(test.config, "D/", dir+"/")})
		if got := asked(t, dir, test.cwd, "model", "profile", "notify", "model_providers"); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.what, got, test.want)
		}
	}
	grow(t, dir, map[string]string{"p/.codex/config.toml": "[", "home/.codex/config.toml": ""})
	if got := asked(t, dir, "p", "model"); got != "0 0" {
		t.Errorf("one that is not trusted is read: %s", got)
	}
	grow(t, dir, map[string]string{"home/.codex/config.toml": strings.ReplaceAll(trust("p", "trusted"), "D/", dir+"/")})
	if got := asked(t, dir, "p", "model"); !strings.HasPrefix(got, "failed to load executor-local config: Error parsing project config file D/p/.codex/config.toml:1:") {
		t.Error(got)
	}
}

// A work tree is trusted with its repository, if that knows of it.
func TestWorkTrees(t *testing.T) {
	dir := tree(t, map[string]string{"main/.git/worktrees/wt/HEAD": "", "wt/.codex/config.toml": "model = 'wt'"})
	grow(t, dir, map[string]string{
		"wt/.git":                       "gitdir: " + dir + "/main/.git/worktrees/wt\n",
		"home/.codex/config.toml":       "[projects.'" + dir + "/main']\ntrust_level = 'trusted'\n",
		"main/.git/worktrees/wt/gitdir": dir + "/elsewhere/.git\n",
	})
	if got := asked(t, dir, "wt", "model"); got != "0 0" {
		t.Errorf("anybody can write such a link: %s", got)
	}
	if err := os.WriteFile(dir+"/main/.git/worktrees/wt/gitdir", []byte(dir+"/wt/.git\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, dir, "wt", "model"); got != `project (D/wt/.codex/config.toml)|file://D/wt/.codex|model = "wt"/;0 0` {
		t.Error(got)
	}
}
