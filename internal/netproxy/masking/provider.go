package masking

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Bounds of what a client may have looked for.
const (
	maxProviders    = 64
	maxItems        = 64      // of each list of a provider
	maxProviderText = 4 << 10 // of each text of a provider, in bytes
)

// Provider is a kind of credential: which variables have it, what it looks like,
// and which requests carry it.
type Provider struct {
	Env              []string `json:"env"`
	Patterns         []string `json:"patterns"`
	URLPrefixes      []string `json:"url_prefixes"`
	URLPrefixFromEnv string   `json:"url_prefix_from_env"`
	Auth             []Form   `json:"auth"`
	// Header is the field of the form Header, and Prefix what stands in it before
	// the credential.
	Header string `json:"header"`
	Prefix string `json:"prefix"`

	name     string
	formats  []*regexp.Regexp // of Patterns
	prefixes []string         // what built-in credentials begin with, the longest first
	hostFrom string           // a variable that has a host, in place of URLPrefixFromEnv
}

// Form is how a request carries a credential.
type Form string

// The forms. All but the last are of the field Authorization.
const (
	Bearer Form = "bearer"
	Token  Form = "token"
	Basic  Form = "basic"
	Header Form = "header"
)

// builtin are the credentials that the reference knows.
func builtin() []*Provider {
	github := []string{"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"}
	tokens := regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})`)
	return []*Provider{
		{
			name: "github", Env: []string{"GITHUB_TOKEN", "GH_TOKEN"}, Auth: []Form{Bearer, Token, Basic},
			URLPrefixes: []string{"https://api.github.com", "https://github.com", "https://uploads.github.com"},
			prefixes:    github, formats: []*regexp.Regexp{tokens},
		},
		{
			name: "github-enterprise", Env: []string{"GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"}, Auth: []Form{Bearer, Token, Basic},
			hostFrom: "GH_HOST", prefixes: github,
		},
		{
			name: "openai", Env: []string{"OPENAI_API_KEY"}, Auth: []Form{Bearer},
			URLPrefixes: []string{"https://api.openai.com"}, URLPrefixFromEnv: "OPENAI_BASE_URL",
			prefixes: []string{"sk-svcacct-", "sk-admin-", "sk-proj-", "sk-"},
			formats:  []*regexp.Regexp{regexp.MustCompile(`\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}`)},
		},
	}
}

// custom reads the providers that a client has. One that is wrong is an error: to
// leave it out would leave its credentials in the environment.
func custom(text []byte) ([]*Provider, error) {
	if len(text) == 0 {
		return nil, nil
	}
	named := map[string]*Provider{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&named); err != nil {
		return nil, errors.New("credential providers: they are not of the known shape")
	}
	if len(named) > maxProviders {
		return nil, fmt.Errorf("more than %d credential providers", maxProviders)
	}
	var all []*Provider
	for name, p := range named {
		if p == nil || name == "" || len(name) > maxProviderText {
			return nil, errors.New("credential provider name must not be empty")
		}
		p.name = name
		if err := p.check(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Provider) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check has the reference's words.
func (p *Provider) check() error {
	wrong := func(what string) error { return fmt.Errorf("credential provider `%s` %s", p.name, what) }
	if len(p.Auth) > maxItems {
		return wrong("is too long")
	}
	for _, list := range [][]string{p.Env, p.Patterns, p.URLPrefixes, {p.URLPrefixFromEnv, p.Header, p.Prefix}} {
		if len(list) > maxItems || slices.ContainsFunc(list, func(s string) bool { return len(s) > maxProviderText }) {
			return wrong("is too long")
		}
	}
	switch {
	case len(p.Env) == 0:
		return wrong("has no environment keys")
	case slices.ContainsFunc(p.Env, func(s string) bool { return !variable.MatchString(s) }):
		return wrong("has an invalid environment key")
	case slices.ContainsFunc(p.Env, builtinKey):
		return wrong("overlaps a built-in credential source")
	case len(p.URLPrefixes) == 0 && p.URLPrefixFromEnv == "":
		return wrong("has no destination URL prefixes")
	case len(p.Patterns) == 0:
		return wrong("has no credential patterns")
	case slices.Contains(p.Auth, Header) != (p.Header != ""):
		return wrong("requires a header name exactly when using header authentication")
	case p.Prefix != "" && p.Header == "":
		return wrong("requires header authentication to use a header prefix")
	case p.Header != "" && !httpguts.ValidHeaderFieldName(p.Header), !httpguts.ValidHeaderFieldValue(p.Prefix):
		return fmt.Errorf("invalid header for credential provider `%s`", p.name)
	}
	for _, form := range p.Auth {
		if form != Bearer && form != Token && form != Basic && form != Header {
			return wrong("has an unknown form of authentication")
		}
	}
	for _, url := range p.URLPrefixes {
		if _, err := ParseDestination(url); err != nil {
			return fmt.Errorf("invalid destination for credential provider `%s`", p.name)
		}
	}
	for _, pattern := range p.Patterns {
		format, err := regexp.Compile(pattern)
		if err != nil || format.MatchString("") {
			return fmt.Errorf("invalid credential pattern for provider `%s`", p.name)
		}
		p.formats = append(p.formats, format)
	}
	return nil
}

func builtinKey(name string) bool {
	return slices.ContainsFunc(builtin(), func(p *Provider) bool { return p.has(name) })
}

// has says whether a variable of that name has the provider's credential.
func (p *Provider) has(name string) bool {
	return slices.ContainsFunc(p.Env, func(key string) bool { return strings.EqualFold(key, name) })
}

// urls are the destinations of the provider's credentials in an environment. What
// a variable has there, and is none, is left out.
func (p *Provider) urls(env map[string]string) []string {
	urls := slices.Clone(p.URLPrefixes)
	more := env[p.URLPrefixFromEnv]
	if host := env[p.hostFrom]; p.hostFrom != "" && host != "" {
		more = "https://" + host
	}
	if _, err := ParseDestination(more); err == nil {
		urls = append(urls, more)
	}
	return urls
}
