package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// claims are those that count. exp and nbf are whole seconds: 1.0 and "1" are
// none. The embedded claims are there for the library, which is told to leave
// them alone.
type claims struct {
	jwt.RegisteredClaims
	exp, nbf *int64
	iss      *string
	aud      []string
}

var errClaims = errors.New("claims of another shape")

// UnmarshalJSON implements json.Unmarshaler. The standard decoder would take
// "EXP" for exp, and the last of two.
func (c *claims) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errClaims
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		switch name {
		case "exp":
			err = json.Unmarshal(value, &c.exp)
		case "nbf":
			err = json.Unmarshal(value, &c.nbf)
		case "iss":
			err = json.Unmarshal(value, &c.iss)
		case "aud":
			c.aud, err = audience(value)
		default:
			continue
		}
		key := fmt.Sprint(name)
		if err != nil || seen[key] {
			return errClaims
		}
		seen[key] = true
	}
	return nil
}

// audience is a string or a list of strings; null is none.
func audience(value []byte) ([]string, error) {
	if value[0] == '"' {
		value = fmt.Appendf(nil, "[%s]", value)
	}
	var each []*string
	if err := json.Unmarshal(value, &each); err != nil {
		return nil, err
	}
	all := make([]string, 0, len(each))
	for _, s := range each {
		if s == nil {
			return nil, errClaims
		}
		all = append(all, *s)
	}
	return all, nil
}
