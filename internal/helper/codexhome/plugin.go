package codexhome

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxPlugins bounds how many are looked at.
const maxPlugins = 512

// plugins adds the installed plugins: CACHE/MARKETPLACE/NAME/VERSION, of each
// the newest version.
func (d *Discovery) plugins(cache string) {
	looked := 0
	for _, market := range directories(cache) {
		for _, name := range directories(filepath.Join(cache, market)) {
			if !isSegment(market) || !isSegment(name) || looked == maxPlugins {
				continue
			}
			looked++
			d.plugin(filepath.Join(cache, market, name), name+"@"+market)
		}
	}
	slices.SortFunc(d.Plugins, func(a, b Plugin) int { return strings.Compare(a.ID, b.ID) })
}

// directories lists the directories in one, sorted; links do not count.
func directories(dir string) (names []string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range list {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// isSegment tells whether a name may be that of a plugin or a marketplace.
func isSegment(s string) bool { return isVersion(s) && s[0] != '.' && !strings.Contains(s, "+") }

func isVersion(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("-_.+", c) < 0 {
			return false
		}
	}
	return s != ""
}

func (d *Discovery) plugin(dir, id string) {
	var versions []string
	for _, version := range directories(dir) {
		if isVersion(version) {
			versions = append(versions, version)
		}
	}
	if len(versions) == 0 {
		return
	}
	version := slices.MaxFunc(versions, compareVersions)
	p := Plugin{ID: id, Version: version}
	s := &scan{root: filepath.Join(dir, version)}
	ok := p.load(s)
	remote, err := remoteID(dir)
	if err != nil {
		d.Warnings = slices.Insert(d.Warnings, 0, notResolved) // before the others
	}
	p.RemotePluginID = remote
	if s.failed {
		d.Warnings = append(d.Warnings, notLoaded)
	}
	if ok {
		d.Plugins = append(d.Plugins, p)
	}
}

// remoteID is the name of a plugin where it was installed from, if that is known.
func remoteID(dir string) (*string, error) {
	data, err := read(filepath.Join(dir, ".codex-remote-plugin-install.json"), maxText)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := proto.Parse(data)
	if err != nil {
		return nil, err
	}
	version, ok := v.Get("schema_version").Uint64()
	id := v.Get("remote_plugin_id")
	if !ok || version != 1 || id.Kind != proto.String || strings.TrimSpace(id.Str()) == "" {
		return nil, errors.New("it has another form")
	}
	text := id.Str()
	return &text, nil
}

// load reads the plugin in the scan's root. It is not ok if it has no manifest
// that can be used.
func (p *Plugin) load(s *scan) bool {
	path := manifestOf(s.root)
	text, ok := "", false
	if path != "" {
		text, ok = s.text(path)
	}
	m, err := parseManifest(text)
	if !ok || err != nil {
		s.failed = true
		return false
	}
	p.Root = uri(s.root)
	p.DisplayName = m.display
	if strings.TrimSpace(p.DisplayName) == "" {
		p.DisplayName = m.nameIn(s.root)
	}
	p.Files.Manifest = File{uri(path), text}
	if m.inlineMCP != "" {
		p.Files.MCPConfig = &File{uri(path), m.inlineMCP}
	} else {
		p.Files.MCPConfig = s.part(m.mcp, ".mcp.json")
	}
	p.Files.AppsConfig = s.part(m.apps, ".app.json")
	p.Skills = s.skills()
	return true
}

// part reads a file of the plugin that the manifest names, or else the one with
// the usual name, which need not be there.
func (s *scan) part(named *string, usual string) *File {
	path := filepath.Join(s.root, usual)
	if named != nil {
		below, ok := strings.CutPrefix(*named, "./")
		if !ok || below == "" || slices.Contains(strings.Split(below, "/"), "..") {
			s.failed = true
			return nil
		}
		path = filepath.Join(s.root, below)
	}
	text, ok := s.text(path)
	if !ok {
		s.failed = s.failed || named != nil
		return nil
	}
	return &File{uri(path), text}
}

// manifestOf is the path of the manifest in a directory, or "".
func manifestOf(dir string) string {
	for _, folder := range []string{".codex-plugin", ".claude-plugin", ".cursor-plugin"} {
		path := filepath.Join(dir, folder, "plugin.json")
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// manifest is what a plugin.json says.
type manifest struct {
	name, display string
	mcp, apps     *string // files, if they are named
	inlineMCP     string  // JSON text
}

var errManifest = errors.New("the manifest has another form")

func parseManifest(text string) (*manifest, error) {
	v, err := proto.Parse([]byte(text))
	if err != nil || v.Kind != proto.Object {
		return nil, errManifest
	}
	str := func(v proto.Value) *string {
		switch v.Kind {
		case proto.Absent, proto.Null:
			return nil
		case proto.String:
			s := v.Str()
			return &s
		}
		err = errManifest
		return nil
	}
	m := &manifest{}
	if name := str(v.Get("name")); name != nil {
		m.name = *name
	}
	switch face := v.Get("interface"); face.Kind {
	case proto.Absent, proto.Null:
	case proto.Object:
		if display := str(face.Get("displayName")); display != nil {
			m.display = *display
		}
	default:
		err = errManifest
	}
	m.apps = str(v.Get("apps"))
	switch servers := v.Get("mcpServers"); servers.Kind {
	case proto.String:
		m.mcp = str(servers)
	case proto.Object:
		m.inlineMCP = member(text, "mcpServers")
	}
	return m, err
}

// member is the text of a member of an object, without blanks.
func member(text, name string) string {
	var all map[string]json.RawMessage
	var b bytes.Buffer
	if json.Unmarshal([]byte(text), &all) != nil || json.Compact(&b, all[name]) != nil {
		return ""
	}
	return b.String()
}

// nameIn is the plugin's name, which is that of its directory if it has none.
func (m *manifest) nameIn(dir string) string {
	if strings.TrimSpace(m.name) == "" {
		return filepath.Base(dir)
	}
	return m.name
}

// compareVersions puts the version of a checkout last, and otherwise goes by
// semantic versions where both are, and by text.
func compareVersions(a, b string) int {
	if a == b {
		return 0
	}
	if a == "local" || b == "local" {
		return boolCompare(a == "local", b == "local")
	}
	x, ok := parseVersion(a)
	y, ok2 := parseVersion(b)
	if !ok || !ok2 {
		return strings.Compare(a, b)
	}
	return x.compare(y)
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// version is a semantic version.
type version struct {
	core  [3]uint64
	pre   []string
	build string
}

func parseVersion(s string) (v version, ok bool) {
	s, v.build, _ = strings.Cut(s, "+")
	s, pre, hasPre := strings.Cut(s, "-")
	if hasPre {
		v.pre = strings.Split(pre, ".")
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || len(part) > 1 && part[0] == '0' {
			return v, false
		}
		v.core[i] = n
	}
	return v, !slices.Contains(v.pre, "")
}

func (v version) compare(w version) int {
	if c := slices.Compare(v.core[:], w.core[:]); c != 0 {
		return c
	}
	if len(v.pre) == 0 || len(w.pre) == 0 {
		return cmp.Or(boolCompare(len(v.pre) == 0, len(w.pre) == 0), strings.Compare(v.build, w.build))
	}
	c := slices.CompareFunc(v.pre, w.pre, func(a, b string) int {
		x, errX := strconv.ParseUint(a, 10, 64)
		y, errY := strconv.ParseUint(b, 10, 64)
		switch {
		case errX == nil && errY == nil:
			return cmp.Compare(x, y)
		case errX == nil || errY == nil:
			return boolCompare(errY == nil, errX == nil) // numbers are lower
		}
		return strings.Compare(a, b)
	})
	return cmp.Or(c, strings.Compare(v.build, w.build))
}
