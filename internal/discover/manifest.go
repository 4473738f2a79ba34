package discover

import (
	"strings"

	"github.com/exec-server/exec-server/internal/proto"
)

// Kinds of declarations in a manifest.
const (
	usual  = iota // none that means anything: the file of the usual name counts
	named         // the path of a file
	inline        // an object, in place of a file
)

type declaration struct {
	kind int
	path string // if named
}

// manifest is what counts in a plugin's manifest.
type manifest struct{ mcpServers, apps declaration }

// parseManifest reads a manifest. One that cannot be read declares nothing.
//
// The reference is lenient where members do not concern it and strict where they
// do, and so is this: a member that is not known may hold anything that has the
// form of JSON, however deep and with whatever keys. An array stands for an
// object of the two members.
func parseManifest(text string) manifest {
	var m manifest
	p := parser{text: text}
	p.space()
	switch {
	case p.accept('{'):
		p.object(&m)
	case p.accept('['):
		p.array(&m)
	default:
		return manifest{}
	}
	if p.space(); p.failed || p.pos < len(text) {
		return manifest{}
	}
	return m
}

func (p *parser) object(m *manifest) {
	var hasServers, hasApps bool
	for more := !p.end('}'); more && !p.failed; more = p.next('}') {
		p.space()
		key, ok := p.decoded()
		if p.space(); !ok || !p.accept(':') {
			p.failed = true
			return
		}
		switch {
		case key == "mcpServers" && !hasServers:
			hasServers, m.mcpServers = true, p.declaration()
		case key == "apps" && !hasApps:
			hasApps, m.apps = true, p.declaration()
		case key == "mcpServers" || key == "apps":
			p.failed = true
		default:
			p.value(anything)
		}
	}
}

func (p *parser) array(m *manifest) {
	members := [...]*declaration{&m.mcpServers, &m.apps}
	n := 0
	for more := !p.end(']'); more && !p.failed; more = p.next(']') {
		if n == len(members) {
			p.failed = true
			return
		}
		*members[n] = p.declaration()
		n++
	}
}

// declaration reads the value of a member that counts.
func (p *parser) declaration() declaration {
	p.space()
	start := p.pos
	p.value(strict)
	if p.failed {
		return declaration{}
	}
	switch p.text[start] {
	case '{':
		return declaration{kind: inline}
	case '"':
		v, err := proto.Parse([]byte(p.text[start:p.pos]))
		p.failed = p.failed || err != nil
		return declaration{kind: named, path: v.Str()}
	}
	return declaration{}
}

// resolve is the file that a manifest means, or what is wrong with its path.
func resolve(root place, path string) (at place, fault string) {
	rest, ok := strings.CutPrefix(path, "./")
	if !ok {
		return place{}, "path must start with `./`"
	}
	const outside = "path must remain below the capability root"
	if rest == "" || rest[0] == '/' || strings.IndexByte(rest, 0) >= 0 {
		return place{}, outside
	}
	var names []string
	for name := range strings.SplitSeq(rest, "/") {
		for part := range strings.SplitSeq(name, `\`) {
			if part == ".." {
				return place{}, outside
			}
		}
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return root, ""
	}
	return root.below(strings.Join(names, "/")), ""
}
