package masking

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/ca"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// Credential is a secret, and what the command has in its place.
type Credential struct {
	Secret      string   `json:"secret"`
	Placeholder string   `json:"placeholder"`
	URLs        []string `json:"urls"`
	Auth        []Form   `json:"auth"`
	Header      string   `json:"header,omitempty"`
	Prefix      string   `json:"prefix,omitempty"`

	destinations []Destination // of URLs
}

// Secrets are what a command's proxy needs to undo the masking.
type Secrets struct {
	Credentials []Credential `json:"credentials"`
	// CA is the CA of the command, its certificate and its key in PEM. The key is
	// nowhere but in the memory of the agent and of the command's proxy, and ends with
	// them.
	CA string `json:"ca"`

	authority *ca.Authority // of CA
}

// ParseSecrets reads what a Result has for the proxy.
func ParseSecrets(text []byte) (*Secrets, error) {
	s := &Secrets{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("masked credentials: %w", err)
	}
	for i := range s.Credentials {
		c := &s.Credentials[i]
		for _, text := range c.URLs {
			d, err := ParseDestination(text)
			if err != nil {
				return nil, err
			}
			c.destinations = append(c.destinations, d)
		}
	}
	var err error
	if s.authority, err = ca.Parse([]byte(s.CA)); err != nil {
		return nil, fmt.Errorf("masked credentials: CA: %w", err)
	}
	return s, nil
}

// Leaf is a certificate for a host, which the command trusts.
func (s *Secrets) Leaf(host policy.Host) (*tls.Certificate, error) {
	return s.authority.Leaf(host.String(), time.Now())
}

// Reach says whether requests to a port of a host can carry a credential, within
// TLS. It is true of nil for none.
func (s *Secrets) Reach(host policy.Host, port uint16) bool {
	if s == nil {
		return false
	}
	for i := range s.Credentials {
		for j := range s.Credentials[i].destinations {
			if s.Credentials[i].destinations[j].at("https", host, port) {
				return true
			}
		}
	}
	return false
}

// Restore puts the secrets into the fields of a request's head that have their
// placeholders, if the request is for one of their destinations. It does nothing
// for nil.
func (s *Secrets) Restore(head http.Header, method, scheme string, host policy.Host, port uint16, u *url.URL) {
	if s == nil || method == http.MethodTrace { // which would be answered with them
		return
	}
	for i := range s.Credentials {
		c := &s.Credentials[i]
		for j := range c.destinations {
			if d := &c.destinations[j]; d.at(scheme, host, port) && d.covers(u) {
				c.restore(head)
				break
			}
		}
	}
}

func (c *Credential) restore(head http.Header) {
	for _, form := range c.Auth {
		name := "Authorization"
		if form == Header {
			name = c.Header
		}
		values := head.Values(name)
		for i, value := range values {
			values[i] = c.restored(form, value)
		}
	}
}

// restored is a field's value with the secret, if the placeholder is there in the
// given form, and the value as it was if not.
func (c *Credential) restored(form Form, value string) string {
	if form == Header {
		if value == c.Prefix+c.Placeholder {
			return c.Prefix + c.Secret
		}
		return value
	}
	scheme, rest, ok := strings.Cut(value, " ")
	if rest = strings.TrimLeft(rest, " "); !ok || !strings.EqualFold(scheme, string(form)) {
		return value
	}
	if form != Basic {
		if rest == c.Placeholder {
			return scheme + " " + c.Secret
		}
		return value
	}
	pair, err := base64.StdEncoding.DecodeString(rest)
	user, password, ok := strings.Cut(string(pair), ":")
	if err != nil || !ok || user != c.Placeholder && password != c.Placeholder {
		return value
	}
	if user == c.Placeholder {
		user = c.Secret
	}
	if password == c.Placeholder {
		password = c.Secret
	}
	return scheme + " " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
