package auth

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSettingsThatAreRefused(t *testing.T) {
	short, empty, binary := write(t, "short\n"), write(t, " \n"), write(t, "a\xffb")
	good := write(t, secret)
	large := write(t, strings.Repeat("x", maxSecretFile+1))
	dir := t.TempDir()
	require := "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`"
	signedOnly := "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`"
	tokenOnly := "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, not `signed-bearer-token`"
	digestShape := "--ws-token-sha256 must be a 64-character hex SHA-256 digest"
	for _, tt := range []struct {
		s    Settings
		want string
	}{
		{Settings{TokenFile: &short}, require},
		{Settings{Issuer: ptr("")}, require},
		{Settings{MaxClockSkewSeconds: ptr(uint64(30))}, require},
		{Settings{Mode: "password"}, `unknown websocket auth mode "password"`},
		{Settings{Mode: CapabilityToken}, "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set"},
		{Settings{Mode: CapabilityToken, TokenFile: &short, TokenSHA256: ptr("zz")}, "`--ws-token-file` and `--ws-token-sha256` are mutually exclusive"},
		{Settings{Mode: CapabilityToken, TokenFile: &short, Issuer: ptr("x")}, signedOnly},
		{Settings{Mode: CapabilityToken, TokenFile: &short, SharedSecretFile: &good}, signedOnly},
		{Settings{Mode: CapabilityToken, TokenFile: ptr("/nonexistent")}, "failed to read websocket auth secret /nonexistent: No such file or directory (os error 2)"},
		{Settings{Mode: CapabilityToken, TokenFile: &dir}, "failed to read websocket auth secret " + dir + ": Is a directory (os error 21)"},
		{Settings{Mode: CapabilityToken, TokenFile: &empty}, "websocket auth secret " + empty + " must not be empty"},
		{Settings{Mode: CapabilityToken, TokenFile: &binary}, "failed to read websocket auth secret " + binary + ": stream did not contain valid UTF-8"},
		{Settings{Mode: CapabilityToken, TokenFile: &large}, "failed to read websocket auth secret " + large + ": it has more than 1048576 bytes"},
		{Settings{Mode: CapabilityToken, TokenSHA256: ptr("")}, digestShape},
		{Settings{Mode: CapabilityToken, TokenSHA256: ptr("zz")}, digestShape},
		{Settings{Mode: CapabilityToken, TokenSHA256: ptr(strings.Repeat("0", 62))}, digestShape},
		{Settings{Mode: CapabilityToken, TokenSHA256: ptr(strings.Repeat("0", 66))}, digestShape},
		{Settings{Mode: CapabilityToken, TokenSHA256: ptr(strings.Repeat("g", 64))}, digestShape},
		{Settings{Mode: SignedBearerToken}, "`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set"},
		{Settings{Mode: SignedBearerToken, SharedSecretFile: &good, TokenFile: &short}, tokenOnly},
		{Settings{Mode: SignedBearerToken, TokenSHA256: ptr("x")}, tokenOnly},
		{Settings{Mode: SignedBearerToken, SharedSecretFile: &short}, "signed websocket bearer secret " + short + " must be at least 32 bytes"},
		{Settings{Mode: SignedBearerToken, SharedSecretFile: &empty}, "websocket auth secret " + empty + " must not be empty"},
		{Settings{Mode: SignedBearerToken, SharedSecretFile: &good, MaxClockSkewSeconds: ptr(uint64(1 << 63))}, "websocket auth clock skew must fit in a signed 64-bit integer"},
	} {
		if g, err := tt.s.Open(); err == nil || err.Error() != tt.want || g != nil {
			t.Errorf("%+v: %v, want %s", tt.s, err, tt.want)
		}
	}
}

func TestNobodyIsAskedWithoutAMode(t *testing.T) {
	g, err := Settings{}.Open()
	if err != nil || g.Refuse(nil) != "" || g.Refuse([]string{"nonsense"}) != "" {
		t.Errorf("%v, %v", g, err)
	}
}

func TestCapabilityTokens(t *testing.T) {
	const word = "open-sesame"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(word)))
	for _, s := range []Settings{
		{TokenFile: ptr(write(t, " \t"+word+"\r\n\n"))}, {TokenSHA256: &sum}, {TokenSHA256: ptr(" " + strings.ToUpper(sum) + "\n")},
	} {
		s.Mode = CapabilityToken
		g, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		for want, headers := range map[string][][]string{
			"":                               {{"Bearer " + word}, {"bearer " + word}, {"BEARER \t " + word + " \t"}, {"Bearer " + word, "Bearer x"}},
			"missing websocket bearer token": {nil, {}},
			"invalid authorization header":   {{""}, {word}, {"Basic " + word}, {"Bearer"}, {"Bearer "}, {"Bearer \t"}, {"Bearer\t" + word}, {"Bearer" + word}, {" Bearer " + word}, {"Bearer é"}, {"Bearer \xff"}, {"Bearer " + word + "\x00"}, {"", "Bearer " + word}},
			"invalid websocket bearer token": {{"Bearer x"}, {"Bearer " + word + "x"}, {"Bearer " + word[1:]}, {"Bearer " + strings.ToUpper(word)}, {"Bearer " + word + " x"}, {"Bearer " + sum}, {"Bearer x", "Bearer " + word}, {"Bearer " + strings.Repeat("x", 1<<16)}},
		} {
			for _, h := range headers {
				if got := g.Refuse(h); got != want {
					t.Errorf("%q: %q, want %q", h, got, want)
				}
			}
		}
	}
}

func TestSignedTokensAreCheckedAsConfigured(t *testing.T) {
	g, err := Settings{
		Mode: SignedBearerToken, SharedSecretFile: ptr(write(t, "\n"+secret+"\n")), Issuer: ptr(" me "), Audience: ptr("you"), MaxClockSkewSeconds: ptr(uint64(5)),
	}.Open()
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"exp":99999999999,"iss":"me","aud":"you"}`: "", `{"exp":99999999999,"iss":" me ","aud":"you"}`: otherIssuer, `{"exp":99999999999,"iss":"me"}`: otherAudience,
	} {
		if got := g.Refuse([]string{"Bearer " + token(payload)}); got != want {
			t.Errorf("%s: %q, want %q", payload, got, want)
		}
	}
	if v := g.accept.(*verifier); v.skew != 5 {
		t.Errorf("the skew is %d", v.skew)
	}
	blank, err := Settings{Mode: SignedBearerToken, SharedSecretFile: ptr(write(t, secret)), Issuer: ptr(""), Audience: ptr(" ")}.Open()
	if err != nil {
		t.Fatal(err)
	}
	if v := blank.accept.(*verifier); v.issuer != "" || v.audience != "" || v.skew != 30 {
		t.Errorf("%+v", v)
	}
}
