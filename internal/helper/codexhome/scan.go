package codexhome

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what is looked at below one root, as the reference has them.
const (
	maxDepth       = 6
	maxDirectories = 2000
	maxEntries     = 20000
	maxText        = 1 << 20  // bytes of a file
	maxTexts       = 16 << 20 // bytes of all files
)

// scan looks through a directory for skills.
type scan struct {
	root   string
	failed bool // something could not be read
	bytes  int
}

// text reads a text file. It is not ok if there is none, or if it cannot be used,
// which counts as failed.
func (s *scan) text(path string) (text string, ok bool) {
	data, err := read(path, maxText)
	if missing(err) {
		return "", false
	}
	if s.bytes += len(data); err != nil || s.bytes > maxTexts || !utf8.Valid(data) {
		s.failed = true
		return "", false
	}
	return string(data), true
}

// skills returns the skills, sorted by path.
func (s *scan) skills() []Skill {
	paths := s.find()
	slices.Sort(paths)
	found := []Skill{}
	for _, path := range paths {
		text, ok := s.text(path)
		if !ok {
			s.failed = true
			continue
		}
		skill, err := parseSkill(text, filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = skill.qualify(namespace(filepath.Dir(path)))
		}
		if err != nil {
			s.failed = true
			continue
		}
		skill.Path = uri(path)
		if text, ok := s.text(filepath.Join(filepath.Dir(path), "agents", "openai.yaml")); ok {
			skill.Dependencies, skill.Policy = parseMetadata(text)
		}
		found = append(found, skill)
	}
	return found
}

// find returns the paths of all SKILL.md, breadth first. Links to directories are
// followed, each directory once; links to files are not.
func (s *scan) find() (paths []string) {
	type place struct {
		dir   string
		depth int
	}
	queue := []place{{s.root, 0}}
	seen := map[string]bool{canonical(s.root): true}
	entries := 0
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		list, err := os.ReadDir(at.dir)
		if err != nil {
			s.failed = true
			continue
		}
		for _, e := range list {
			if entries++; entries > maxEntries {
				s.failed = true
				return paths
			}
			path := filepath.Join(at.dir, e.Name())
			if e.Type().IsRegular() {
				if e.Name() == "SKILL.md" {
					paths = append(paths, path)
				}
				continue
			}
			if at.depth == maxDepth || !isDir(path, e) {
				continue
			}
			real := canonical(path)
			if seen[real] {
				continue
			}
			if len(seen) == maxDirectories {
				s.failed = true
				continue
			}
			seen[real] = true
			queue = append(queue, place{path, at.depth + 1})
		}
	}
	return paths
}

func isDir(path string, e os.DirEntry) bool {
	if e.Type()&os.ModeSymlink == 0 {
		return e.IsDir()
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// namespace is the name of the plugin that a directory belongs to: that of the
// nearest manifest at or above it. "" is none.
func namespace(dir string) string {
	for {
		if path := manifestOf(dir); path != "" {
			s := &scan{}
			text, _ := s.text(path)
			if m, err := parseManifest(text); err == nil {
				return m.nameIn(dir)
			}
			return ""
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

const (
	maxName          = 64  // characters of a skill's name
	maxQualifiedName = 128 // with its plugin's
)

var errName = errors.New("the name is too long")

// qualify puts the plugin's name before the skill's.
func (s *Skill) qualify(plugin string) error {
	if plugin != "" {
		s.Name = plugin + ":" + s.Name
	}
	if utf8.RuneCountInString(s.Name) > maxQualifiedName {
		return errName
	}
	return nil
}

// oneLine joins the words of a text with single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
