package masking

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"time"

	"github.com/exec-server/exec-server/internal/ca"
	"github.com/exec-server/exec-server/internal/proto"
)

// Request asks for the masking of one environment.
type Request struct {
	Env       map[string]string `json:"env"`
	Providers json.RawMessage   `json:"providers"`
}

// Result is a masked environment.
type Result struct {
	// Env has the variables that changed.
	Env map[string]string `json:"env"`
	// Bundle has the certificates that the command is to trust, as PEM, and Proxy is
	// for ParseSecrets. Both are "" if there was nothing to mask.
	Bundle string          `json:"bundle"`
	Proxy  json.RawMessage `json:"proxy"`
}

// Answer masks the environment of a request. Its errors have no secrets.
func Answer(params []byte) (proto.JSON, error) {
	var r Request
	if json.Unmarshal(params, &r) != nil {
		return nil, errors.New("not a request for masking")
	}
	providers, err := custom(r.Providers)
	if err != nil {
		return nil, proto.BadParams("invalid network proxy config: %s", err)
	}
	masked := maps.Clone(r.Env)
	found, err := Mask(masked, providers)
	if err != nil {
		return nil, proto.BadParams("credential masking: %s", err)
	}
	out := Result{Env: map[string]string{}}
	for name, value := range masked {
		if r.Env[name] != value {
			out.Env[name] = value
		}
	}
	if len(found) > 0 {
		text, err := ca.New("exec-server credential masking", time.Now())
		if err != nil {
			return nil, err
		}
		authority, err := ca.Parse(text)
		if err != nil {
			return nil, err
		}
		if out.Bundle, err = bundle(string(authority.PEM()), r.Env["SSL_CERT_FILE"], os.Getenv("SSL_CERT_FILE")); err != nil {
			return nil, err
		}
		if out.Proxy, err = json.Marshal(&Secrets{Credentials: found, CA: string(text)}); err != nil {
			return nil, err
		}
	}
	return json.Marshal(&out)
}
