package config

import (
	"math"
	"path"
	"regexp"
	"strings"
)

// userRule is what useradd accepts, or a number, twice.
var userRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*\$?(:[A-Za-z0-9_][A-Za-z0-9_.-]*\$?)?$`)

// validate finds the first bad value; key is the profile's own key.
func (p Profile) validate(key string) *problem {
	switch {
	case strings.ContainsFunc(p.Image, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return bad(key+".image", "%q has blanks in it", p.Image)
	case p.User != "" && !userRule.MatchString(p.User):
		return bad(key+".user", `%q is none of "name", "uid", "name:group", "uid:gid"`, p.User)
	case p.Cwd != "" && !path.IsAbs(p.Cwd):
		return bad(key+".cwd", "%q is no absolute path", p.Cwd)
	case p.CPUs < 0 || math.IsNaN(p.CPUs) || p.CPUs > 4096:
		return bad(key+".cpus", "%v is not from 0 (no limit) to 4096", p.CPUs)
	case p.CPUs > 0 && p.CPUs < 0.01:
		return bad(key+".cpus", "%v is less than 0.01, the least that the kernel can share out", p.CPUs)
	case p.Memory < 0 || p.Memory > 0 && p.Memory < 16<<20:
		return bad(key+".memory", "%s is neither 0 (no limit) nor at least 16MiB", p.Memory)
	case p.Pids < 0 || p.Pids > 0 && p.Pids < 16:
		return bad(key+".pids", "%d is neither 0 (no limit) nor at least 16", p.Pids)
	case p.ShmSize < 64<<10:
		return bad(key+".shm_size", "%s is less than 64KiB", p.ShmSize)
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return bad(key+".env."+name, "no variable can have that name or value")
		}
	}
	return p.Network.validate(key + ".network")
}
