package masking

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	maxCredentials     = 256
	maxCredentialBytes = 64 << 10 // of all secrets, and what comes with them
	// shortSecret is how long a secret has to be, in bytes, to be looked for in the
	// midst of other variables.
	shortSecret = 8
)

var errTooMany = fmt.Errorf("more than %d credentials, or more than %d bytes of them", maxCredentials, maxCredentialBytes)

// Mask puts placeholders into an environment in the place of all credentials of
// the known providers and of those given, wherever a variable has them.
func Mask(env map[string]string, providers []*Provider) ([]Credential, error) {
	providers = append(builtin(), providers...)
	found, err := find(env, providers)
	if err != nil || len(found.order) == 0 {
		return nil, err
	}
	// A secret may be a part of another one, which then has to be seen first.
	slices.SortStableFunc(found.order, func(a, b string) int { return len(b) - len(a) })
	var within []string // pairs for a replacer
	stands := make(map[string]string, len(found.order))
	var out []Credential
	size := 0
	for _, secret := range found.order {
		taken := func(s string) bool {
			for name, value := range env {
				if strings.Contains(value, s) || strings.Contains(name, s) {
					return true
				}
			}
			return slices.Contains(slices.Collect(maps.Values(stands)), s)
		}
		var mask string
		for _, p := range found.of[secret] {
			if mask == "" {
				if mask, err = p.placeholder(secret, taken); err != nil {
					return nil, err
				}
			}
			c := Credential{Secret: secret, Placeholder: mask, URLs: p.urls(env), Auth: p.Auth, Header: p.Header, Prefix: p.Prefix}
			size += len(secret) + len(mask) + len(c.Header) + len(c.Prefix)
			for _, url := range c.URLs {
				size += len(url)
			}
			out = append(out, c)
		}
		stands[secret] = mask
		if len(secret) >= shortSecret {
			within = append(within, secret, mask)
		}
		if len(out) > maxCredentials || size > maxCredentialBytes {
			return nil, errTooMany
		}
	}
	r := strings.NewReplacer(within...)
	for name, value := range env {
		if mask, ok := stands[strings.TrimSpace(value)]; ok {
			env[name] = mask
		} else {
			env[name] = r.Replace(value)
		}
	}
	return out, nil
}

// finds are secrets, and whose they are.
type finds struct {
	order []string
	of    map[string][]*Provider
}

var errNUL = errors.New("a credential has a character that no header can carry")

func (f *finds) add(secret string, p *Provider) error {
	if strings.ContainsAny(secret, "\x00\r\n") {
		return errNUL
	}
	if f.of[secret] == nil {
		f.order = append(f.order, secret)
	}
	if !slices.Contains(f.of[secret], p) {
		f.of[secret] = append(f.of[secret], p)
	}
	if len(f.order) > maxCredentials {
		return errTooMany
	}
	return nil
}

// find looks for credentials: all of the variables that are known to have one, and
// what looks like one in the others.
func find(env map[string]string, providers []*Provider) (*finds, error) {
	f := &finds{of: map[string][]*Provider{}}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := strings.TrimSpace(env[name])
		if value == "" {
			continue
		}
		owned := slices.ContainsFunc(providers, func(p *Provider) bool { return p.has(name) })
		for _, p := range providers {
			if owned && !p.has(name) {
				continue
			}
			matches := p.matches(value)
			if owned && len(matches) == 0 {
				matches = []string{value}
			}
			for _, secret := range matches {
				if err := f.add(secret, p); err != nil {
					return nil, err
				}
			}
		}
	}
	return f, nil
}

// matches are the parts of a value that look like the provider's credentials.
func (p *Provider) matches(value string) (all []string) {
	for _, format := range p.formats {
		all = append(all, format.FindAllString(value, maxCredentials+1)...)
	}
	return all
}
