package process

import (
	"slices"
	"sort"
	"strings"
)

// EnvPolicy says how a command's environment comes from the server's own.
type EnvPolicy struct {
	Inherit               string // "all", "none" or "core"
	IgnoreDefaultExcludes bool
	Exclude               []string // patterns, as in IncludeOnly
	Set                   map[string]string
	IncludeOnly           []string
}

var (
	coreNames       = []string{"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"}
	defaultExcludes = []string{"*KEY*", "*SECRET*", "*TOKEN*"}
)

// Apply builds an environment: the policy's outcome for the server's own
// (NAME=VALUE) with env laid over it. Without a policy it is env alone.
func (p *EnvPolicy) Apply(own []string, env map[string]string) map[string]string {
	out := make(map[string]string, len(own)+len(env)+4)
	if p != nil {
		p.inherit(out, own)
	}
	for name, value := range env {
		out[name] = value
	}
	return out
}

func (p *EnvPolicy) inherit(out map[string]string, own []string) {
	for _, pair := range own {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case p.Inherit == "none":
		case p.Inherit == "core" && !slices.Contains(coreNames, name):
		case !p.IgnoreDefaultExcludes && matchesAny(defaultExcludes, name):
		case matchesAny(p.Exclude, name):
		default:
			out[name] = value
		}
	}
	for name, value := range p.Set {
		out[name] = value
	}
	if len(p.IncludeOnly) == 0 {
		return
	}
	for name := range out {
		if !matchesAny(p.IncludeOnly, name) {
			delete(out, name)
		}
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return match(strings.ToUpper(p), strings.ToUpper(name))
	})
}

// match compares a whole name with a pattern of * and ?. It remembers one
// star only, which is enough and keeps hostile patterns quadratic.
func match(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// pairs renders an environment for execve, sorted so that a command sees the
// same order each time.
func pairs(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	sort.Strings(out)
	return out
}
