package cli

import (
	"fmt"

	"github.com/exec-server/exec-server/internal/auth"
	"github.com/exec-server/exec-server/internal/config"
)

// authFlags are the reference's. If any is given, the configuration's table
// [listen.auth] does not count: what is given here has to be complete.
type authFlags struct {
	Auth             *string `name:"ws-auth" placeholder:"MODE" help:"How harnesses authenticate: capability-token or signed-bearer-token (nobody has to)."`
	TokenFile        *string `name:"ws-token-file" placeholder:"PATH" help:"File with the capability token."`
	TokenSHA256      *string `name:"ws-token-sha256" placeholder:"HEX" help:"SHA-256 of the capability token."`
	SharedSecretFile *string `name:"ws-shared-secret-file" placeholder:"PATH" help:"File with the secret that bearer tokens (JWT, HS256) are signed with; at least 32 bytes."`
	Issuer           *string `name:"ws-issuer" placeholder:"ISSUER" help:"What the iss of bearer tokens has to be."`
	Audience         *string `name:"ws-audience" placeholder:"AUDIENCE" help:"What the aud of bearer tokens has to be, or to contain."`
	MaxClockSkew     *uint64 `name:"ws-max-clock-skew-seconds" placeholder:"SECONDS" help:"Grace for exp and nbf of bearer tokens (30)."`
}

// check finds mistakes that are usage errors.
func (f *authFlags) check() error {
	if m := f.Auth; m != nil && *m != auth.CapabilityToken && *m != auth.SignedBearerToken {
		return usageError(fmt.Sprintf("--ws-auth must be one of %q, %q but got %q", auth.CapabilityToken, auth.SignedBearerToken, *m))
	}
	for name, path := range map[string]*string{"--ws-token-file": f.TokenFile, "--ws-shared-secret-file": f.SharedSecretFile} {
		if path != nil && *path == "" {
			return usageError(name + " needs a path")
		}
	}
	return nil
}

// settings are those of the flags, or else of the configuration.
func (f *authFlags) settings(cfg config.Auth) auth.Settings {
	s := auth.Settings{
		TokenFile: f.TokenFile, TokenSHA256: f.TokenSHA256, SharedSecretFile: f.SharedSecretFile,
		Issuer: f.Issuer, Audience: f.Audience, MaxClockSkewSeconds: f.MaxClockSkew,
	}
	if f.Auth != nil {
		s.Mode = *f.Auth
	}
	if s != (auth.Settings{}) {
		return s
	}
	return configured(cfg)
}

func configured(cfg config.Auth) auth.Settings {
	set := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	s := auth.Settings{
		TokenFile: set(cfg.TokenFile), TokenSHA256: set(cfg.TokenSHA256), SharedSecretFile: set(cfg.SharedSecretFile),
		Issuer: set(cfg.Issuer), Audience: set(cfg.Audience),
	}
	if cfg.Mode != "none" {
		s.Mode = cfg.Mode
	}
	if s.Mode == auth.SignedBearerToken {
		skew := uint64(cfg.MaxClockSkew.Seconds())
		s.MaxClockSkewSeconds = &skew
	}
	return s
}
