package auth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
)

// The modes.
const (
	CapabilityToken   = "capability-token"
	SignedBearerToken = "signed-bearer-token"
)

// Settings say how harnesses authenticate themselves. A field that is nil was
// not given; Mode "" lets everybody in.
type Settings struct {
	Mode string
	// TokenFile holds the capability token; TokenSHA256 is its digest in hex.
	TokenFile, TokenSHA256 *string
	// SharedSecretFile holds the secret that tokens are signed with.
	SharedSecretFile *string
	// Issuer and Audience are what a token's iss and aud have to be; "" is anything.
	Issuer, Audience *string
	// MaxClockSkewSeconds is the grace of exp and nbf (30).
	MaxClockSkewSeconds *uint64
}

// minSecret is how many bytes a shared secret has at least.
const minSecret = 32

// Check judges which settings were given together. It reads no file.
func (s Settings) Check() error {
	token := s.TokenFile != nil || s.TokenSHA256 != nil
	signed := s.SharedSecretFile != nil || s.Issuer != nil || s.Audience != nil || s.MaxClockSkewSeconds != nil
	switch s.Mode {
	case "":
		if token || signed {
			return errors.New("websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`")
		}
	case CapabilityToken:
		switch {
		case signed:
			return errors.New("`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`")
		case s.TokenFile != nil && s.TokenSHA256 != nil:
			return errors.New("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive")
		case !token:
			return errors.New("`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set")
		}
	case SignedBearerToken:
		switch {
		case token:
			return errors.New("`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, not `signed-bearer-token`")
		case s.SharedSecretFile == nil:
			return errors.New("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set")
		}
	default:
		return fmt.Errorf("unknown websocket auth mode %q", s.Mode)
	}
	return nil
}

// Open checks the settings and reads what they name. It returns nil if
// everybody is let in.
func (s Settings) Open() (*Guard, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	switch s.Mode {
	case CapabilityToken:
		return s.openToken()
	case SignedBearerToken:
		return s.openSigned()
	}
	return nil, nil
}

func (s Settings) openToken() (*Guard, error) {
	if s.TokenSHA256 == nil {
		token, err := readSecret(*s.TokenFile)
		if err != nil {
			return nil, err
		}
		return &Guard{accept: capability(digest(token))}, nil
	}
	want, err := hex.DecodeString(strings.TrimSpace(*s.TokenSHA256))
	if err != nil || len(want) != len(capability{}) {
		return nil, errors.New("--ws-token-sha256 must be a 64-character hex SHA-256 digest") // and not what it was
	}
	return &Guard{accept: capability(want)}, nil
}

func (s Settings) openSigned() (*Guard, error) {
	secret, err := readSecret(*s.SharedSecretFile)
	if err != nil {
		return nil, err
	}
	if len(secret) < minSecret {
		return nil, fmt.Errorf("signed websocket bearer secret %s must be at least %d bytes", absolute(*s.SharedSecretFile), minSecret)
	}
	v := &verifier{secret: []byte(secret), issuer: trimmed(s.Issuer), audience: trimmed(s.Audience), skew: 30}
	if n := s.MaxClockSkewSeconds; n != nil {
		if *n > math.MaxInt64 {
			return nil, errors.New("websocket auth clock skew must fit in a signed 64-bit integer")
		}
		v.skew = int64(*n)
	}
	return &Guard{accept: v}, nil
}

func trimmed(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(*s)
}
