package config

import (
	"errors"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The transports of an environment.
const (
	Noise  = "noise"
	Direct = "direct"
)

// Remote has what environments leave out.
type Remote struct {
	URL string `toml:"url"`
	Key
	Way
}

// Environment is one that registers itself with a registry, and is reached
// through it. As JSON it is what the daemon keeps of one that was added while it
// ran; no field holds a secret.
type Environment struct {
	// Remote is the base URL of the registry.
	Remote string `toml:"remote" json:"remote"`
	// EnvironmentID is what the registry calls it; "" is its name.
	EnvironmentID string `toml:"environment_id" json:"environment_id,omitempty"`
	Transport     string `toml:"transport" json:"transport,omitempty"`
	Profile       string `toml:"profile" json:"profile,omitempty"`
	Key
	AWSProfile string `toml:"aws_profile" json:"aws_profile,omitempty"`
	AWSRegion  string `toml:"aws_region" json:"aws_region,omitempty"`
	AWSService string `toml:"aws_service" json:"aws_service,omitempty"`
	Way
}

// Key says where the token for a registry is: one of the three, or none.
type Key struct {
	KeyFile    string   `toml:"key_file" json:"key_file,omitempty"`
	KeyEnv     string   `toml:"key_env" json:"key_env,omitempty"`
	KeyCommand []string `toml:"key_command" json:"key_command,omitempty"`
}

// Way is how the registry is reached; "" is what the server's own variables say.
type Way struct {
	Proxy   string `toml:"proxy" json:"proxy,omitempty"`
	NoProxy string `toml:"no_proxy" json:"no_proxy,omitempty"`
	CAFile  string `toml:"ca_file" json:"ca_file,omitempty"`
}

// Complete fills what an environment leaves out and checks it. The error names
// the key, and is nil for an environment that can be served.
func (c *Config) Complete(name string, e Environment) (Environment, error) {
	if p := c.complete(name, &e, ""); p != nil {
		return e, errors.New(strings.TrimPrefix(p.key+": ", ": ") + p.text)
	}
	return e, nil
}

// Fill fills what an environment leaves out, and checks nothing.
func (c *Config) Fill(name string, e Environment) Environment {
	fill(&e.Remote, c.Remote.URL)
	fill(&e.EnvironmentID, name)
	fill(&e.Transport, Noise)
	fill(&e.Profile, c.DefaultProfile)
	fill(&e.Proxy, c.Remote.Proxy)
	fill(&e.NoProxy, c.Remote.NoProxy)
	fill(&e.CAFile, c.Remote.CAFile)
	if e.Transport == Noise && e.count() == 0 {
		e.Key = c.Remote.Key
	}
	return e
}

// complete is Complete, with prefix before the keys in its problem.
func (c *Config) complete(name string, e *Environment, prefix string) *problem {
	table := strings.TrimSuffix(prefix, ".")
	if !nameRule.MatchString(name) {
		return bad(table, "%q is no name; use "+nameHint, name)
	}
	*e = c.Fill(name, *e)
	switch {
	case e.Remote == "":
		return bad(table, "remote is missing; it is the base URL of the registry")
	case !registryRule(e.Remote):
		return bad(prefix+"remote", noRegistry, quoteURL(e.Remote))
	case !idRule.MatchString(e.EnvironmentID):
		return bad(prefix+"environment_id", "%q is not 1 to 256 of A-Z a-z 0-9 . _ ~ : @ -", e.EnvironmentID)
	case e.Transport != Noise && e.Transport != Direct:
		return bad(prefix+"transport", "%q is none of noise, direct", e.Transport)
	case e.Transport == Direct && e.count() > 0:
		return bad(prefix+e.Key.first(), "has no meaning with transport = \"direct\", which is signed with AWS credentials")
	case e.Transport == Noise && e.AWSProfile+e.AWSRegion+e.AWSService != "":
		return bad(prefix+e.aws(), "has no meaning with transport = \"noise\"")
	}
	if _, ok := c.Profiles[e.Profile]; !ok {
		return bad(prefix+"profile", "there is no [profile.%s]", e.Profile)
	}
	if p := e.Key.validate(prefix); p != nil {
		return p
	}
	return e.Way.validate(prefix)
}

// HasKey tells whether the token's place is given.
func (k Key) HasKey() bool { return k.count() > 0 }

func (k Key) count() (n int) {
	for _, given := range []bool{k.KeyFile != "", k.KeyEnv != "", len(k.KeyCommand) > 0} {
		if given {
			n++
		}
	}
	return n
}

func (k Key) first() string {
	switch {
	case k.KeyFile != "":
		return "key_file"
	case k.KeyEnv != "":
		return "key_env"
	}
	return "key_command"
}

func (k Key) validate(prefix string) *problem {
	switch {
	case k.count() > 1:
		return bad(prefix+k.first(), "only one of key_file, key_env and key_command can be given")
	case k.KeyFile != "" && !path.IsAbs(k.KeyFile):
		return bad(prefix+"key_file", "%q is no absolute path of a file", k.KeyFile)
	case k.KeyEnv != "" && !variableRule.MatchString(k.KeyEnv):
		return bad(prefix+"key_env", "it is no name of a variable") // and may be the key
	case len(k.KeyCommand) > 0 && (k.KeyCommand[0] == "" || strings.ContainsRune(strings.Join(k.KeyCommand, ""), 0)):
		return bad(prefix+"key_command", "it is not a program and its arguments")
	}
	return nil
}

func (e *Environment) aws() string {
	switch {
	case e.AWSProfile != "":
		return "aws_profile"
	case e.AWSRegion != "":
		return "aws_region"
	}
	return "aws_service"
}

func (w Way) validate(prefix string) *problem {
	if w.Proxy != "" && w.Proxy != NoProxy {
		u := w.proxy()
		if u == nil || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) || u.Hostname() == "" {
			// It may have a password in it.
			return bad(prefix+"proxy", "it is neither the URL of a proxy (http, https, socks5, socks5h) nor \"none\"")
		}
	}
	if w.CAFile != "" && !path.IsAbs(w.CAFile) {
		return bad(prefix+"ca_file", "%q is no absolute path of a file", w.CAFile)
	}
	return nil
}

// NoProxy is the proxy of those who want none, whatever the variables say.
const NoProxy = "none"

// proxy is the proxy's URL; nil if it is none.
func (w Way) proxy() *url.URL {
	text := w.Proxy
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	return u
}

// ProxyHasSecret tells whether the proxy's URL has a user or a password in it.
func (w Way) ProxyHasSecret() bool { return strings.Contains(w.Proxy, "@") }

// validate checks the defaults as far as they can be wrong by themselves.
func (r Remote) validate() *problem {
	if r.URL != "" && !registryRule(r.URL) {
		return bad("remote.url", noRegistry, quoteURL(r.URL))
	}
	if p := r.Key.validate("remote."); p != nil {
		return p
	}
	return r.Way.validate("remote.")
}

// completeAll does so for the file's environments.
func (c *Config) completeAll() *problem {
	if p := c.Remote.validate(); p != nil {
		return p
	}
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Environments)) {
		e := c.Environments[name]
		prefix := "environment." + name + "."
		if p := c.complete(name, &e, prefix); p != nil {
			return p
		}
		if e.Transport == Noise && !e.HasKey() {
			return bad("environment."+name, "it needs one of key_file, key_env and key_command")
		}
		if other, ok := taken[e.Address()]; ok {
			return bad("environment."+name, "it is the same environment of the same registry as %s", other)
		}
		taken[e.Address()] = name
		c.Environments[name] = e
	}
	return nil
}

// Address is what no two environments may have in common: the registry, and what
// that calls the environment.
func (e Environment) Address() string {
	base := strings.TrimRight(e.Remote, "/")
	if u, err := url.Parse(base); err == nil {
		host := strings.ToLower(u.Hostname())
		if port := strings.TrimLeft(u.Port(), "0"); port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
			host += ":" + port
		}
		base = u.Scheme + "://" + host + u.EscapedPath()
	}
	return base + " " + e.EnvironmentID
}

var (
	idRule       = regexp.MustCompile(`^[A-Za-z0-9._~:@-]{1,256}$`) // what needs no escape in a path
	variableRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// noRegistry is what is wrong with a URL that breaks registryRule.
const noRegistry = "%s is no http or https URL with a host, without a user, a query and a fragment"

// registryRule tells whether a base URL can be one. Without a host there is
// nobody to ask; a user in it would be a secret that is shown.
func registryRule(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == "" && u.RawQuery == ""
}

// quoteURL shows a URL without what may be a password.
func quoteURL(raw string) string {
	if strings.Contains(raw, "@") {
		return "it"
	}
	return `"` + raw + `"`
}

func fill(key *string, with string) {
	if *key == "" {
		*key = with
	}
}
