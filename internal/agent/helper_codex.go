package agent

import (
	"github.com/exec-server/exec-server/internal/proto"
)

// configRead is what environmentConfig/read asks for.
type configRead struct {
	cwd   proto.URI
	paths [2][][]string // of the configuration and of requirements
}

func decodeConfigRead(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "EnvironmentConfigReadParams")
	r := &configRead{cwd: p.URI("cwd")}
	for i, name := range []string{"configPaths", "requirementsPaths"} {
		list := p.Required(name)
		if list.Kind != proto.Array {
			p.Strings(list) // has the words
			continue
		}
		for j := range list.Len() {
			r.paths[i] = append(r.paths[i], p.Strings(list.At(j)))
		}
	}
	return operation{do: r.do, waits: func(*conn) bool { return true }}, p.Err()
}

func (r *configRead) do(c *conn) (proto.Result, error) {
	cwd, err := r.cwd.Native()
	if err != nil {
		return nil, proto.BadParams("%s", err)
	}
	if len(r.paths[0])+len(r.paths[1]) == 0 {
		return nil, proto.BadParams("at least one config or requirements path is required")
	}
	b := proto.AppendString([]byte(`{"home":`), c.server.home())
	b = proto.AppendString(append(b, `,"cwd":`...), cwd)
	for i, name := range []string{"configPaths", "requirementsPaths"} {
		b = append(append(append(b, `,"`...), name...), `":[`...)
		for j, path := range r.paths[i] {
			if len(path) == 0 {
				return nil, proto.BadParams("TOML paths must contain at least one key segment")
			}
			if j > 0 {
				b = append(b, ',')
			}
			b = appendStrings(b, path)
		}
		b = append(b, ']')
	}
	return c.askHelper(helperSpec{mode: "config"}, "environmentConfig/read", append(b, '}'), isConfig)
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = proto.AppendString(b, s)
	}
	return append(b, ']')
}

// isConfig tells whether v has the form of the result of environmentConfig/read.
func isConfig(v proto.Value) bool {
	host := v.Get("hostname").Kind
	return v.Len() == 5 && areStrings(v, "userHomeDir", "codexHomeDir") && (host == proto.String || host == proto.Null) &&
		areLayers(v.Get("config")) && areLayers(v.Get("requirements"))
}

func areLayers(v proto.Value) bool {
	layers := v.Get("layers")
	_, ok := v.Get("cloudInsertionIndex").Uint64()
	if !ok || v.Len() != 2 || layers.Kind != proto.Array {
		return false
	}
	for i := range layers.Len() {
		if l := layers.At(i); l.Len() != 3 || !areStrings(l, "source", "baseDir", "toml") {
			return false
		}
	}
	return true
}

func areStrings(v proto.Value, names ...string) bool {
	for _, name := range names {
		if v.Get(name).Kind != proto.String {
			return false
		}
	}
	return true
}

func decodeDiscoverV2(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "DiscoverV2CapabilitiesParams")
	p.URI("cwd") // what is installed does not depend on it
	sandbox := p.StrictSandboxParam()
	return operation{waits: func(*conn) bool { return true }, do: func(c *conn) (proto.Result, error) {
		params := append(proto.AppendString([]byte(`{"home":`), c.server.home()), '}')
		policy, err := c.server.filePolicy(sandbox)
		if err != nil {
			return nil, err
		}
		if policy != nil && policy.ReadsAll() {
			policy = nil
		}
		return c.askHelper(helperSpec{mode: "discover", confine: policy}, "capabilities/discoverV2", params, isDiscovery)
	}}, p.Err()
}

// isDiscovery tells whether v has the form of the result of
// capabilities/discoverV2.
func isDiscovery(v proto.Value) bool {
	plugins, skills, warnings := v.Get("plugins"), v.Get("skills"), v.Get("warnings")
	if v.Len() != 3 || plugins.Kind != proto.Array || warnings.Kind != proto.Array || !areSkills(skills, 7) {
		return false
	}
	for i := range plugins.Len() {
		p := plugins.At(i)
		if p.Len() != 7 || !areStrings(p, "id", "displayName", "version", "root") || p.Get("files").Kind != proto.Object || !areSkills(p.Get("skills"), 6) {
			return false
		}
	}
	for i := range warnings.Len() {
		if warnings.At(i).Kind != proto.String {
			return false
		}
	}
	return true
}

func areSkills(list proto.Value, members int) bool {
	if list.Kind != proto.Array {
		return false
	}
	for i := range list.Len() {
		if s := list.At(i); s.Len() != members || !areStrings(s, "name", "description", "path") {
			return false
		}
	}
	return true
}
