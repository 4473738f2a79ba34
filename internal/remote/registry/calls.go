package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/exec-server/exec-server/internal/remote/noise"
)

const (
	securityProfile = "noise_hybrid_ik_v1"
	directTransport = "direct_jsonrpc_v1"
	validate        = "validate"
	streamHeader    = "X-Codex-Noise-Stream-Id"
)

// Registration is what a registry gives out.
type Registration struct {
	ID  string // of the registration, part of the handshakes
	URL string // of the rendezvous
}

// RegisterNoise registers the environment with the key that harnesses have to use.
// The URL of the registration was not checked, except for a scoped credential: one
// that cannot be used makes a connection fail, as in the reference. Errors are
// *Error, ErrAnswer, credential.ErrUnavailable, or what kept the call from being made.
func (c *Client) RegisterNoise(ctx context.Context, key noise.PublicKey) (Registration, error) {
	header := http.Header{}
	answer, err := c.post(ctx, "register", header, struct {
		Profile string          `json:"security_profile"`
		Key     noise.PublicKey `json:"executor_public_key"`
	}{securityProfile, key})
	if err != nil {
		return Registration{}, err
	}
	a, err := parse(answer, "environment_id", "url", "security_profile", "executor_registration_id")
	if err != nil {
		return Registration{}, err
	}
	if a["environment_id"] != c.id() {
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned a different environment id")
	}
	if profile := a["security_profile"]; profile != securityProfile {
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned unsupported security profile `%s`", clean(hide(header, profile), maxCode))
	}
	if c.Credential.Scoped() && !secure(a["url"]) {
		return Registration{}, errInsecure
	}
	return Registration{a["executor_registration_id"], a["url"]}, nil
}

// RegisterDirect registers the environment for one connection in the clear at a
// time. The URL is one of TLS or loopback. Errors are RegisterNoise's.
func (c *Client) RegisterDirect(ctx context.Context) (Registration, error) {
	header := http.Header{}
	answer, err := c.post(ctx, "direct/register", header, struct {
		Transport string `json:"transport"`
	}{directTransport})
	if err != nil {
		return Registration{}, err
	}
	a, err := parse(answer, "environment_id", "transport", "registration_id", "url")
	if err != nil {
		return Registration{}, err
	}
	switch {
	case a["environment_id"] != c.id():
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned a different environment id")
	case a["transport"] != directTransport:
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned unsupported direct transport `%s`", clean(hide(header, a["transport"]), maxCode))
	case a["registration_id"] == "":
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned incomplete direct connection data")
	case !secure(a["url"]):
		return Registration{}, errInsecure
	}
	return Registration{a["registration_id"], a["url"]}, nil
}

// Validate asks whether a harness with that key and authorization may come. nil is
// yes; an *Error with status 401, that the registry refuses the authorization.
func (c *Client) Validate(ctx context.Context, registrationID, streamID string, harness noise.PublicKey, authorization string) error {
	if !headerValue(streamID) {
		return errors.New("the stream's id cannot be sent in a header")
	}
	answer, err := c.post(ctx, validate, http.Header{streamHeader: {streamID}}, struct {
		Registration  string          `json:"executor_registration_id"`
		Key           noise.PublicKey `json:"harness_public_key"`
		Authorization string          `json:"harness_key_authorization"`
	}{registrationID, harness, authorization})
	if err != nil {
		return err
	}
	var j struct {
		Valid *bool `json:"valid"`
	}
	if err := json.Unmarshal(answer, &j); err != nil || j.Valid == nil {
		return badAnswer("failed to serialize or deserialize exec-server JSON")
	}
	if !*j.Valid {
		return ErrInvalid
	}
	return nil
}

// headerValue tells whether a text can be the value of a header.
func headerValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
