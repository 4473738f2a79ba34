package broker

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
	"golang.org/x/net/http/httpguts"
)

const (
	authorization = "Authorization"
	// inFormat is where the secret belongs in Credential.Format.
	inFormat = "{secret}"
)

// field is the field that a credential sets, and its value for what the sandbox has
// sent in that field: nothing else of it is kept but what is around the placeholder.
func field(c *rules.Credential, s secret.Secret) (header string, value func(sent []string) string, err error) {
	text := s.Reveal()
	if text == "" || !httpguts.ValidHeaderFieldValue(text) {
		return "", nil, errors.New("credential: the secret cannot be sent in a header")
	}
	header = http.CanonicalHeaderKey(c.Header)
	if header == "" {
		header = authorization
	}
	whole := c.Format
	switch {
	case c.BasicUser != "":
		whole = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.BasicUser+":"+text))
	case whole == "" && header == authorization:
		whole = "Bearer " + text
	case whole == "":
		whole = text
	default:
		whole = strings.ReplaceAll(whole, inFormat, text)
	}
	return header, func(sent []string) string {
		for _, v := range sent {
			if replaced, ok := fill(v, c.Placeholder, text); ok {
				return replaced
			}
		}
		return whole
	}, nil
}

// fill puts the secret in the place of the placeholder: once, so that nothing grows
// beyond measure. In basic authentication it looks below the encoding.
func fill(v, placeholder, text string) (string, bool) {
	if placeholder == "" {
		return "", false
	}
	if strings.Contains(v, placeholder) {
		return strings.Replace(v, placeholder, text, 1), true
	}
	const basic = "Basic "
	if len(v) < len(basic) || !strings.EqualFold(v[:len(basic)], basic) {
		return "", false
	}
	pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(v[len(basic):]))
	if err != nil || !strings.Contains(string(pair), placeholder) {
		return "", false
	}
	return basic + base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(pair), placeholder, text, 1))), true
}
