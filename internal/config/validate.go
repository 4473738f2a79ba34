package config

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

const nameHint = "1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or a digit"

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// problem is the first bad value, with the full name of its key, and in which
// element of a list of tables that is, from 0.
type problem struct {
	key, text string
	element   int
}

func bad(key, format string, args ...any) *problem {
	return &problem{key: key, text: fmt.Sprintf(format, args...)}
}

// validate checks what types cannot say. The index only tells whether the file
// gives a version.
func (c *Config) validate(index keyIndex) *problem {
	hasVersion := slices.ContainsFunc(index.keys, func(k keyPlace) bool { return k.String() == "version" })
	switch {
	case !hasVersion:
		return bad("version", "missing; write version = %d at the top", Version)
	case c.Version != Version:
		return bad("version", "%d is not known to this program; it reads version %d", c.Version, Version)
	case !path.IsAbs(c.Root) || path.Clean(c.Root) == "/":
		return bad("root", "%q is no absolute path of a directory below /", c.Root)
	case !nameRule.MatchString(c.Listen.EnvironmentID):
		return bad("listen.environment_id", "%q is no name; use "+nameHint, c.Listen.EnvironmentID)
	case !listenable(c.Listen.URL):
		return bad("listen.url", `%q is none of "ws://IP:PORT", "stdio" and "none"`, c.Listen.URL)
	case !servable(c.Metrics.URL):
		return bad("metrics.url", `%q is neither "http://IP:PORT" nor "none"`, c.Metrics.URL)
	case c.Listen.ConcurrentRequests < 1 || c.Listen.ConcurrentRequests > 1024:
		return bad("listen.concurrent_requests", "%d is not from 1 to 1024", c.Listen.ConcurrentRequests)
	case c.Containerd.Address != "" && !path.IsAbs(c.Containerd.Address):
		return bad("containerd.address", "%q is no absolute path of a socket", c.Containerd.Address)
	case c.Containerd.Runc != "" && !path.IsAbs(c.Containerd.Runc):
		return bad("containerd.runc", "%q is no absolute path of a program", c.Containerd.Runc)
	case c.Session.Detach.Duration < 0 || c.Session.Detach.Duration > 30*24*time.Hour:
		return bad("session.detach", "%s is not from 0s to 720h", c.Session.Detach)
	case c.Session.KeepClosed.Duration < 0 || c.Session.KeepClosed.Duration > 30*24*time.Hour:
		return bad("session.keep_closed", "%s is not from 0s to 720h", c.Session.KeepClosed)
	case c.Session.OutputBytes < 4<<10 || c.Session.OutputBytes > 1<<30:
		return bad("session.output_bytes", "%s is not from 4KiB to 1GiB", c.Session.OutputBytes)
	case c.Limits.Environments < 1:
		return bad("limits.environments", "%d is less than 1", c.Limits.Environments)
	}
	for _, choice := range []struct {
		key, value string
		of         []string
	}{
		{"runtime", c.Runtime, []string{"containerd", "host"}},
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"auto", "text", "json"}},
		{"listen.scope", c.Listen.Scope, []string{"environment", "session"}},
		{"listen.auth.mode", c.Listen.Auth.Mode, []string{"none", "capability-token", "signed-bearer-token"}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return bad(choice.key, "%q is none of %s", choice.value, strings.Join(choice.of, ", "))
		}
	}
	if p := c.Listen.Auth.validate(); p != nil {
		return p
	}
	if p := c.Network.validate(); p != nil {
		return p
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if p := c.Profiles[name].validate("profile." + name); p != nil {
			return p
		}
		if !nameRule.MatchString(name) {
			return bad("profile."+name, "%q is no name; use "+nameHint, name)
		}
	}
	if _, ok := c.Profiles[c.DefaultProfile]; !ok {
		return bad("default_profile", "there is no [profile.%s]", c.DefaultProfile)
	}
	return c.completeAll()
}

func servable(url string) bool {
	addr, ok := strings.CutPrefix(url, "http://")
	_, err := netip.ParseAddrPort(addr)
	return url == NoListener || ok && err == nil
}

func listenable(url string) bool {
	if url == "stdio" || url == "stdio://" || url == NoListener {
		return true
	}
	addr, ok := strings.CutPrefix(url, "ws://")
	_, err := netip.ParseAddrPort(addr)
	return ok && err == nil
}
