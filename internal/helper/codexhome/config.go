package codexhome

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/proto"
)

const (
	// maxConfig bounds a configuration file, in bytes.
	maxConfig = 4 << 20
	systemDir = "/etc/codex"
)

// Config is the result of environmentConfig/read.
type Config struct {
	UserHomeDir  string  `json:"userHomeDir"`
	CodexHomeDir string  `json:"codexHomeDir"`
	Hostname     *string `json:"hostname"`
	Config       Layers  `json:"config"`
	Requirements Layers  `json:"requirements"`
}

// Layers go from the weakest to the strongest. CloudInsertionIndex is where a
// managed layer from elsewhere would be put.
type Layers struct {
	Layers              []Layer `json:"layers"`
	CloudInsertionIndex int     `json:"cloudInsertionIndex"`
}

// Layer is what one file says about the keys that were asked for.
type Layer struct {
	Source  string `json:"source"`
	BaseDir string `json:"baseDir"`
	TOML    string `json:"toml"`
}

// ReadConfig reads the configuration that counts in cwd for the user with that
// home directory. Errors are *proto.Error.
func ReadConfig(home, cwd string, configPaths, requirementsPaths [][]string) (*Config, error) {
	return readConfig(systemDir, home, cwd, configPaths, requirementsPaths)
}

func readConfig(system, home, cwd string, configPaths, requirementsPaths [][]string) (*Config, error) {
	dir, err := codexHome(home)
	if err != nil {
		return nil, proto.Errorf(proto.CodeInternal, "failed to find Codex home: %s", err)
	}
	out := &Config{UserHomeDir: uri(home), CodexHomeDir: uri(dir)}
	if name, err := os.Hostname(); err == nil && utf8.ValidString(name) {
		out.Hostname = &name
	}
	f := &files{system: system, home: dir}
	if err := f.load(cwd); err != nil {
		return nil, proto.Errorf(proto.CodeInternal, "failed to load executor-local config: %s", err)
	}
	keys := wanted(configPaths)
	c := &out.Config
	c.Layers = []Layer{}
	c.add("system (%s)", f.systemConfig, keys)
	c.CloudInsertionIndex = len(c.Layers)
	c.add("user (%s)", f.user, keys)
	for _, project := range f.projects {
		c.add("project (%s)", project, keys)
	}
	c.add("legacy managed_config.toml (%s)", f.managed, keys)

	keys = wanted(requirementsPaths)
	r := &out.Requirements
	r.Layers = []Layer{}
	r.add("%s", f.requirements, keys)
	r.CloudInsertionIndex = len(r.Layers)
	r.add("%s", f.managedRequirements, keys)
	return out, nil
}

// add adds what a file says about the keys, if it says something.
func (l *Layers) add(source string, f *file, keys *want) {
	if f == nil {
		return
	}
	if part := f.root.project(keys); len(part.keys) > 0 {
		l.Layers = append(l.Layers, Layer{fmt.Sprintf(source, f.path), uri(filepath.Dir(f.path)), part.String()})
	}
}

func uri(path string) string { return proto.FileURI(path).String() }

// file is a file of the configuration.
type file struct {
	path string
	root *node
}

// files are those that count.
type files struct {
	system, home string

	systemConfig, user, managed       *file
	projects                          []*file
	requirements, managedRequirements *file
}

// load reads them all. A file that is not there is nil.
func (f *files) load(cwd string) (err error) {
	if f.systemConfig, err = open(filepath.Join(f.system, "config.toml"), ""); err != nil {
		return err
	}
	if f.user, err = open(filepath.Join(f.home, "config.toml"), ""); err != nil {
		return err
	}
	if f.managed, err = open(filepath.Join(f.system, "managed_config.toml"), ""); err != nil {
		return err
	}
	if f.requirements, err = open(filepath.Join(f.system, "requirements.toml"), "failed to parse requirements layer "); err != nil {
		return err
	}
	if f.managedRequirements, err = legacyRequirements(f.managed); err != nil {
		return err
	}
	return f.loadProjects(cwd)
}

// open reads a file; complaint begins what is said about one that is not TOML.
func open(path, complaint string) (*file, error) {
	data, err := read(path, maxConfig)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("Failed to read config file %s: %s", path, words(path, err)) //nolint:staticcheck // the reference's words
	}
	if at := invalidUTF8(data); at >= 0 {
		return nil, fmt.Errorf("Failed to read config file %s: invalid utf-8 sequence of 1 bytes from index %d", path, at) //nolint:staticcheck // the same
	}
	root, err := parseTOML(data)
	if err != nil {
		return nil, fmt.Errorf("%s%s:%w", complaint, path, err)
	}
	return &file{path, root}, nil
}

// legacyRequirements are what the legacy managed configuration requires.
func legacyRequirements(f *file) (*file, error) {
	if f == nil {
		return nil, nil
	}
	out := newTable()
	for _, rule := range []struct {
		key, requirement string
		values           []string
		always           string // allowed whatever is said
	}{
		{"approval_policy", "allowed_approval_policies", []string{"untrusted", "on-failure", "on-request", "granular", "never"}, ""},
		{"approvals_reviewer", "allowed_approvals_reviewers", nil, ""},
		{"sandbox_mode", "allowed_sandbox_modes", []string{"read-only", "workspace-write", "danger-full-access"}, "read-only"},
	} {
		v := f.root.get(rule.key)
		if v == nil {
			continue
		}
		s, ok := v.str()
		if !ok {
			return nil, errors.New("Failed to parse config requirements as TOML: invalid type, expected string\nin `" + rule.key + "`\n") //nolint:staticcheck // the reference's words
		}
		known := rule.values == nil
		for _, value := range rule.values {
			known = known || value == s
		}
		if !known {
			return nil, fmt.Errorf("Failed to parse config requirements as TOML: unknown variant `%s`\nin `%s`\n", s, rule.key) //nolint:staticcheck // the reference's words
		}
		list := &node{kind: array}
		if rule.always != "" && rule.always != s {
			list.items = append(list.items, &node{text: quote(rule.always)})
		}
		list.items = append(list.items, &node{text: quote(s)})
		out.set(rule.requirement, list)
	}
	return &file{f.path, out}, nil
}

// invalidUTF8 is where the first byte is that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
