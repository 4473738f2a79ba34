package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/exec-server/exec-server/internal/remote/credential"
	"github.com/exec-server/exec-server/internal/remote/noise"
)

const (
	securityProfile = "noise_hybrid_ik_v1"
	directTransport = "direct_jsonrpc_v1"
	streamHeader    = "X-Codex-Noise-Stream-Id"
	// maxField bounds what an answer says of a registration, in bytes.
	maxField = 16 << 10
)

// ErrAnswer is what errors are when a registry's answer of success is not what it
// should be.
var ErrAnswer = errors.New("the registry's answer cannot be used")

// ErrInvalid is that the registry does not know a harness's key.
var ErrInvalid = errors.New("the registry says that the harness's key is not valid")

type answerError struct{ text string }

func (a *answerError) Error() string        { return a.text }
func (a *answerError) Is(target error) bool { return target == ErrAnswer }

func badAnswer(format string, args ...any) error {
	return &answerError{fmt.Sprintf(format, args...)}
}

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
	answer, err := c.post(ctx, "register", http.Header{}, struct {
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
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned unsupported security profile `%s`", clean(profile, maxCode))
	}
	if c.Credential.Scoped() && !secure(a["url"]) {
		return Registration{}, errInsecure
	}
	return Registration{a["executor_registration_id"], a["url"]}, nil
}

// RegisterDirect registers the environment for one connection in the clear at a
// time. The URL is one of TLS or loopback. Errors are RegisterNoise's.
func (c *Client) RegisterDirect(ctx context.Context) (Registration, error) {
	answer, err := c.post(ctx, "direct/register", http.Header{}, struct {
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
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned unsupported transport `%s`", clean(a["transport"], maxCode))
	case a["registration_id"] == "":
		return Registration{}, badAnswer("exec-server protocol error: environment registry returned an empty registration id")
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
	answer, err := c.post(ctx, "validate", http.Header{streamHeader: {streamID}}, struct {
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

var errInsecure = badAnswer("environment registry configuration error: remote transport requires wss for non-loopback endpoints")

// secure tells whether a rendezvous is reached over TLS or loopback.
func secure(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return false
	}
	return u.Scheme == "wss" || u.Scheme == "ws" && credential.IsLoopback(u.Hostname())
}

// parse reads the fields of an answer, all of them texts. Others are ignored.
func parse(answer []byte, names ...string) (map[string]string, error) {
	var j map[string]json.RawMessage
	if err := json.Unmarshal(answer, &j); err != nil {
		return nil, badAnswer("failed to serialize or deserialize exec-server JSON: it is not an object")
	}
	fields := make(map[string]string, len(names))
	for _, name := range names {
		raw, ok := j[name]
		if !ok {
			return nil, badAnswer("failed to serialize or deserialize exec-server JSON: missing field `%s`", name)
		}
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil {
			return nil, badAnswer("failed to serialize or deserialize exec-server JSON: field `%s` is not a string", name)
		}
		if len(*text) > maxField {
			return nil, badAnswer("exec-server protocol error: field `%s` has more than %d bytes", name, maxField)
		}
		fields[name] = *text
	}
	return fields, nil
}
