package discover

import (
	"cmp"
	"slices"

	"github.com/exec-server/exec-server/internal/fs"
	"github.com/exec-server/exec-server/internal/proto"
)

// manifests are the places of a plugin's manifest, the first that is there
// counts.
var manifests = [...]string{".codex-plugin/plugin.json", ".claude-plugin/plugin.json", ".cursor-plugin/plugin.json"}

// scan is a root that is being looked through.
type scan struct {
	*Result
	limit   int64   // on Result.size
	found   []place // files of skills
	plugins []nested
	known   string // path of the plugin whose manifest was read first
}

// nested is a directory with a manifest that the walk has met.
type nested struct {
	dir  place
	rank int // index in manifests
}

// walk notes where skills and manifests are. Links to directories are followed,
// links to files are not seen.
func (s *scan) walk(root proto.URI) {
	truncated, err := fs.Walk(root, maxDepth, maxDirectories, maxEntries, s)
	if err != nil {
		s.Failed(s.path, proto.WireError(err).Message)
	}
	if truncated {
		s.warn("capability scan reached its traversal limit (root: " + s.path + ")")
	}
	slices.SortFunc(s.found, func(a, b place) int { return cmp.Compare(a.uri, b.uri) })
	slices.SortFunc(s.plugins, func(a, b nested) int {
		return cmp.Or(cmp.Compare(a.dir.uri, b.dir.uri), cmp.Compare(a.rank, b.rank))
	})
}

// Found implements fs.Visitor.
func (s *scan) Found(uri, path string, directory bool) {
	if directory {
		return
	}
	p := place{uri, path}
	switch p.base() {
	case "SKILL.md":
		s.found = append(s.found, p)
	case "plugin.json":
		holder, _ := p.parent()
		rank := slices.Index(manifests[:], holder.base()+"/plugin.json")
		if dir, ok := holder.parent(); ok && rank >= 0 {
			s.plugins = append(s.plugins, nested{dir, rank})
		}
	}
}

// Failed implements fs.Visitor.
func (s *scan) Failed(uri, message string) {
	s.warn("failed to scan capability path " + uri + ": " + message)
}

// manifest reads the manifest of a plugin, nil if it has none.
func (s *scan) manifest(dir place) *file {
	for _, name := range manifests {
		if f := s.read(dir.below(name)); f != nil {
			return f
		}
	}
	return nil
}

func (s *scan) findPlugin(root place) {
	if f := s.manifest(root); f != nil {
		s.plugin = &plugin{manifest: f}
	}
}

// findNamespaces reads the manifest that applies to the root, its own or that of
// the nearest directory above it, and those below it.
func (s *scan) findNamespaces(root place) {
	if s.plugin != nil {
		s.known, s.namespaces = root.path, append(s.namespaces, s.plugin.manifest)
	}
	for up, ok := root.parent(); ok && s.known == ""; up, ok = up.parent() {
		if f := s.manifest(up); f != nil {
			s.known, s.namespaces = up.path, append(s.namespaces, f)
		}
	}
	for i, n := range s.plugins {
		if n.dir.path == s.known || i > 0 && n.dir == s.plugins[i-1].dir {
			continue
		}
		if f := s.read(n.dir.below(manifests[n.rank])); f != nil {
			s.namespaces = append(s.namespaces, f)
		}
	}
}

func (s *scan) findSkills() {
	for _, p := range s.found {
		instructions := s.read(p)
		if instructions == nil {
			continue
		}
		dir, _ := p.parent()
		s.skills = append(s.skills, skill{instructions, s.read(dir.below("agents/openai.yaml"))})
	}
}

// findDeclared reads the files that the manifest names, or those that have the
// usual names.
func (s *scan) findDeclared(root place) {
	if s.plugin == nil {
		return
	}
	m := parseManifest(s.plugin.manifest.contents)
	if m.mcpServers.kind != inline {
		s.plugin.mcpConfig = s.declared(root, "mcpServers", m.mcpServers, ".mcp.json")
	}
	s.plugin.appsConfig = s.declared(root, "apps", m.apps, ".app.json")
}

func (s *scan) declared(root place, member string, d declaration, otherwise string) *file {
	if d.kind == named {
		at, fault := resolve(root, d.path)
		if fault == "" {
			return s.read(at)
		}
		s.warn("ignoring " + member + " in " + s.plugin.manifest.uri + ": " + fault)
	}
	return s.read(root.below(otherwise))
}
