package codexhome

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// notForProjects are the keys that the configuration of a project may not set:
// they would send what the user says elsewhere.
var notForProjects = []string{
	"chatgpt_base_url", "experimental_realtime_ws_base_url", "model_provider", "model_providers", "notify",
	"openai_base_url", "otel", "profile", "profiles",
}

// loadProjects reads the configuration of the project that cwd is in, from its
// root down to cwd, where the user trusts it.
func (f *files) loadProjects(cwd string) error {
	markers := []string{".git"}
	if list := f.setting("project_root_markers"); list != nil && list.kind == array {
		markers = nil
		for _, item := range list.items {
			if name, ok := item.str(); ok {
				markers = append(markers, name)
			}
		}
	}
	root := ancestor(cwd, markers)
	if root == "" {
		root = cwd
	}
	t := &trust{root: root, repository: repository(cwd)}
	if err := t.read(f.setting("projects")); err != nil {
		return err
	}
	for _, dir := range between(root, cwd) {
		folder := filepath.Join(dir, ".codex")
		if !t.has(dir) || canonical(folder) == canonical(f.home) {
			continue
		}
		project, err := open(filepath.Join(folder, "config.toml"), "Error parsing project config file ")
		if err != nil {
			return err
		}
		if project != nil {
			project.root = project.root.without(notForProjects...)
			f.projects = append(f.projects, project)
		}
	}
	return nil
}

// setting is what the user's configuration has for a key, or else the system's.
func (f *files) setting(key string) *node {
	for _, file := range []*file{f.user, f.systemConfig} {
		if file != nil && file.root.get(key) != nil {
			return file.root.get(key)
		}
	}
	return nil
}

// ancestor is the nearest directory at or above dir that has one of the names in
// it, or "".
func ancestor(dir string, names []string) string {
	for {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// between lists the directories from root down to dir.
func between(root, dir string) []string {
	var all []string
	for {
		all = append(all, dir)
		up := filepath.Dir(dir)
		if dir == root || up == dir {
			slices.Reverse(all)
			return all
		}
		dir = up
	}
}

// repository is the directory of the Git repository that dir is in; of a work
// tree it is that of the repository that it belongs to. "" is none.
func repository(dir string) string {
	root := ancestor(dir, []string{".git"})
	if root == "" {
		return ""
	}
	link := filepath.Join(root, ".git")
	text, err := read(link, 64<<10)
	if err != nil {
		return root
	}
	meta, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if meta = strings.TrimSpace(meta); !ok || meta == "" {
		return root
	}
	if !filepath.IsAbs(meta) {
		meta = filepath.Join(root, meta)
	}
	worktrees := filepath.Dir(filepath.Clean(meta))
	git := filepath.Dir(worktrees)
	// The repository has to know of the work tree: anybody can write the link.
	back, err := read(filepath.Join(meta, "gitdir"), 64<<10)
	if err != nil || filepath.Base(worktrees) != "worktrees" || filepath.Base(git) != ".git" ||
		canonical(strings.TrimSpace(string(back))) != canonical(link) {
		return root
	}
	return filepath.Dir(git)
}

// trust is what the user has said about directories.
type trust struct {
	root, repository string
	levels           map[string]bool
}

func (t *trust) read(projects *node) error {
	t.levels = map[string]bool{}
	if projects == nil || projects.kind != table {
		return nil
	}
	for _, dir := range projects.keys {
		level := projects.members[dir].get("trust_level")
		if level == nil {
			continue
		}
		switch s, _ := level.str(); s {
		case "trusted", "untrusted":
			t.levels[dir] = s == "trusted"
		default:
			return fmt.Errorf("unknown variant `%s`, expected `trusted` or `untrusted`\nin `projects.%s.trust_level`\n", s, dir) //nolint:staticcheck // the reference's words
		}
	}
	return nil
}

// has tells whether the configuration in a directory counts. What was said about
// the directory itself comes before what was said about its project.
func (t *trust) has(dir string) bool {
	for _, place := range []string{dir, t.root, t.repository} {
		if place == "" {
			continue
		}
		for _, name := range []string{canonical(place), place} {
			if trusted, said := t.levels[name]; said {
				return trusted
			}
		}
	}
	return false
}
