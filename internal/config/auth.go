package config

import (
	"path"
	"regexp"
	"time"
)

var digestRule = regexp.MustCompile(`^[0-9A-Fa-f]{64}$`)

// validate finds the first bad value. A key that only another mode looks at is
// one: whoever wrote it believes that something is checked which is not.
func (a Auth) validate() *problem {
	const table = "listen.auth."
	for _, k := range []struct{ key, value, mode string }{
		{"token_file", a.TokenFile, "capability-token"},
		{"token_sha256", a.TokenSHA256, "capability-token"},
		{"shared_secret_file", a.SharedSecretFile, "signed-bearer-token"},
		{"issuer", a.Issuer, "signed-bearer-token"},
		{"audience", a.Audience, "signed-bearer-token"},
	} {
		if k.value != "" && a.Mode != k.mode {
			return bad(table+k.key, "needs mode = %q, and the mode is %q", k.mode, a.Mode)
		}
	}
	switch {
	case a.Mode == "capability-token" && (a.TokenFile == "") == (a.TokenSHA256 == ""):
		return bad(table+"mode", `"capability-token" needs one of token_file and token_sha256`)
	case a.Mode == "signed-bearer-token" && a.SharedSecretFile == "":
		return bad(table+"mode", `"signed-bearer-token" needs shared_secret_file`)
	case a.TokenFile != "" && !path.IsAbs(a.TokenFile):
		return bad(table+"token_file", "%q is no absolute path of a file", a.TokenFile)
	case a.TokenSHA256 != "" && !digestRule.MatchString(a.TokenSHA256):
		return bad(table+"token_sha256", "it has to be 64 hex digits") // and not what it is
	case a.SharedSecretFile != "" && !path.IsAbs(a.SharedSecretFile):
		return bad(table+"shared_secret_file", "%q is no absolute path of a file", a.SharedSecretFile)
	case a.MaxClockSkew.Duration < 0 || a.MaxClockSkew.Duration > 24*time.Hour || a.MaxClockSkew.Duration%time.Second != 0:
		return bad(table+"max_clock_skew", "%s is not from 0s to 24h in whole seconds", a.MaxClockSkew)
	}
	return nil
}
