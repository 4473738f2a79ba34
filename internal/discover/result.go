package discover

import "github.com/exec-server/exec-server/internal/proto"

// Results is the answer to capabilityRoots/discoverV1.
type Results []*Result

// Result is what was found in a root.
type Result struct {
	id, path   string
	plugin     *plugin // nil if there is none
	skills     []skill
	namespaces []*file
	warnings   []string
	failure    string // "" if the root could be looked at
	size       int64  // bytes of all files
}

type plugin struct{ manifest, mcpConfig, appsConfig *file }

type skill struct{ instructions, metadata *file }

func (r *Result) warn(text string) { r.warnings = append(r.warnings, text) }

// AppendJSON implements proto.Result.
func (list Results) AppendJSON(dst []byte) []byte {
	return append(appendList(append(dst, `{"roots":`...), list, (*Result).append), '}')
}

func (r *Result) append(dst []byte) []byte {
	dst = proto.AppendString(append(dst, `{"id":`...), r.id)
	dst = proto.AppendString(append(dst, `,"path":`...), r.path)
	dst = append(dst, `,"plugin":`...)
	if r.plugin == nil {
		dst = append(dst, "null"...)
	} else {
		dst = r.plugin.append(dst)
	}
	dst = appendList(append(dst, `,"skills":`...), r.skills, skill.append)
	dst = appendList(append(dst, `,"namespaceManifests":`...), r.namespaces, (*file).append)
	dst = appendList(append(dst, `,"warnings":`...), r.warnings, func(text string, dst []byte) []byte {
		return proto.AppendString(dst, text)
	})
	dst = append(dst, `,"error":`...)
	if r.failure == "" {
		return append(dst, "null}"...)
	}
	return append(proto.AppendString(dst, r.failure), '}')
}

func (p *plugin) append(dst []byte) []byte {
	dst = p.manifest.append(append(dst, `{"manifest":`...))
	dst = p.mcpConfig.append(append(dst, `,"mcpConfig":`...))
	return append(p.appsConfig.append(append(dst, `,"appsConfig":`...)), '}')
}

func (s skill) append(dst []byte) []byte {
	dst = s.instructions.append(append(dst, `{"instructions":`...))
	return append(s.metadata.append(append(dst, `,"metadata":`...)), '}')
}

func (f *file) append(dst []byte) []byte {
	if f == nil {
		return append(dst, "null"...)
	}
	dst = proto.AppendString(append(dst, `{"path":`...), f.uri)
	return append(proto.AppendString(append(dst, `,"contents":`...), f.contents), '}')
}

func appendList[T any](dst []byte, list []T, item func(T, []byte) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item(v, dst)
	}
	return append(dst, ']')
}
