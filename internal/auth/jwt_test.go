package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const secret = "0123456789abcdef0123456789abcdef"

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func sign(key, header, payload string, h func() hash.Hash) string {
	signed := b64(header) + "." + b64(payload)
	mac := hmac.New(h, []byte(key))
	mac.Write([]byte(signed))
	return signed + "." + b64(string(mac.Sum(nil)))
}

func token(payload string) string {
	return sign(secret, `{"alg":"HS256","typ":"JWT"}`, payload, sha256.New)
}

const (
	invalid       = "invalid websocket jwt"
	expired       = "expired websocket jwt"
	early         = "websocket jwt is not valid yet"
	otherIssuer   = "websocket jwt issuer mismatch"
	otherAudience = "websocket jwt audience mismatch"
)

func TestSignatures(t *testing.T) {
	v := &verifier{secret: []byte(secret), skew: 30}
	exp := fmt.Sprintf(`{"exp":%d}`, time.Now().Unix()+3600)
	good := token(exp)
	for name, tt := range map[string]struct{ token, want string }{
		"good":             {good, ""},
		"no typ":           {sign(secret, `{"alg":"HS256"}`, exp, sha256.New), ""},
		"any typ":          {sign(secret, `{"alg":"HS256","typ":"x","kid":"y"}`, exp, sha256.New), ""},
		"another key":      {sign(secret+"x", `{"alg":"HS256"}`, exp, sha256.New), invalid},
		"HS384":            {sign(secret, `{"alg":"HS384"}`, exp, sha512.New384), invalid},
		"HS512":            {sign(secret, `{"alg":"HS512"}`, exp, sha512.New), invalid},
		"none":             {sign(secret, `{"alg":"none"}`, exp, sha256.New), invalid},
		"none, unsigned":   {b64(`{"alg":"none"}`) + "." + b64(exp) + ".", invalid},
		"RS256":            {sign(secret, `{"alg":"RS256"}`, exp, sha256.New), invalid},
		"lower case":       {sign(secret, `{"alg":"hs256"}`, exp, sha256.New), invalid},
		"no algorithm":     {sign(secret, `{"typ":"JWT"}`, exp, sha256.New), invalid},
		"header no object": {sign(secret, `[1]`, exp, sha256.New), invalid},
		"no signature":     {good[:strings.LastIndexByte(good, '.')+1], invalid},
		"two parts":        {good[:strings.LastIndexByte(good, '.')], invalid},
		"four parts":       {good + ".x", invalid},
		"padding":          {good + "=", invalid},
		"another claim":    {strings.Replace(good, b64(exp), b64(`{"exp":9999999999}`), 1), invalid},
		"words":            {"abc", invalid},
		"dots":             {"..", invalid},
		"letters":          {"a.b.c", invalid},
		"empty":            {"", invalid},
	} {
		if got := v.refuse(tt.token); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Changing the bits of the last letter that mean nothing makes another token.
func TestATokenHasOneSpelling(t *testing.T) {
	v := &verifier{secret: []byte(secret)}
	good := token(fmt.Sprintf(`{"exp":%d}`, time.Now().Unix()+3600))
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	other := good[:len(good)-1] + string(letters[strings.IndexByte(letters, good[len(good)-1])^1])
	if v.refuse(good) != "" || v.refuse(other) != invalid {
		t.Errorf("%q, %q", v.refuse(good), v.refuse(other))
	}
}

func TestClaims(t *testing.T) {
	open := verifier{secret: []byte(secret), skew: 30}
	bound := open
	bound.issuer, bound.audience = "me", "you"
	strict := open
	strict.skew = 0
	endless := open
	endless.skew = 1<<63 - 1
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Unix()
		in := func(s int64) string { return fmt.Sprint(now + s) }
		good := `"exp":` + in(60)
		for _, tt := range []struct {
			v             verifier
			payload, want string
		}{
			{open, `{` + good + `}`, ""},
			{open, ` { "exp" : ` + in(60) + ` , "aud" : "x" } `, ""},
			{open, `{}`, invalid}, {open, `{"exp":null}`, invalid}, {open, `{"exp":"` + in(60) + `"}`, invalid}, {open, `{"exp":` + in(60) + `.0}`, invalid},
			{open, `{"exp":1e11}`, invalid}, {open, `{"exp":true}`, invalid}, {open, `{"exp":9223372036854775808}`, invalid}, {open, `{"EXP":` + in(60) + `}`, invalid},
			{open, `{"exp":9223372036854775807}`, ""}, {open, `{"exp":-9223372036854775808}`, expired}, {open, `{"exp":0}`, expired},
			{open, `{"exp":` + in(-30) + `}`, ""}, {open, `{"exp":` + in(-31) + `}`, expired},
			{strict, `{"exp":` + in(0) + `}`, ""}, {strict, `{"exp":` + in(-1) + `}`, expired},
			{open, `{` + good + `,"nbf":` + in(30) + `}`, ""}, {open, `{` + good + `,"nbf":` + in(31) + `}`, early}, {open, `{` + good + `,"nbf":null}`, ""},
			{open, `{` + good + `,"nbf":"1"}`, invalid}, {open, `{` + good + `,"nbf":1.5}`, invalid}, {open, `{` + good + `,"nbf":-9223372036854775808}`, ""},
			{strict, `{` + good + `,"nbf":` + in(0) + `}`, ""}, {strict, `{` + good + `,"nbf":` + in(1) + `}`, early},
			{endless, `{"exp":0,"nbf":9223372036854775807}`, ""}, {endless, `{"exp":-5,"nbf":-5}`, ""},
			{open, `{"exp":` + in(-100) + `,"nbf":` + in(100) + `}`, expired},
			{open, `{` + good + `,"iat":"x","sub":1,"jti":{},"iss":"any","aud":["a","b"],"more":[{}]}`, ""},
			{open, `{` + good + `,"iss":1}`, invalid}, {open, `{` + good + `,"iss":["me"]}`, invalid},
			{open, `{` + good + `,"aud":1}`, invalid}, {open, `{` + good + `,"aud":["you",1]}`, invalid}, {open, `{` + good + `,"aud":["you",null]}`, invalid}, {open, `{` + good + `,"aud":{}}`, invalid},
			{open, `{` + good + `,"aud":null,"iss":null}`, ""}, {open, `{` + good + `,"aud":[]}`, ""},
			{bound, `{` + good + `,"iss":"me","aud":"you"}`, ""}, {bound, `{` + good + `,"iss":"me","aud":["x","you"]}`, ""},
			{bound, `{` + good + `,"aud":"you"}`, otherIssuer}, {bound, `{` + good + `,"iss":null,"aud":"you"}`, otherIssuer}, {bound, `{` + good + `,"iss":"Me","aud":"you"}`, otherIssuer},
			{bound, `{` + good + `,"ISS":"me","aud":"you"}`, otherIssuer}, {bound, `{` + good + `,"iss":"me"}`, otherAudience}, {bound, `{` + good + `,"iss":"me","aud":null}`, otherAudience},
			{bound, `{` + good + `,"iss":"me","aud":["x"]}`, otherAudience}, {bound, `{` + good + `,"iss":"x","aud":"x"}`, otherIssuer}, {bound, `{"exp":0,"iss":"x"}`, expired},
			{bound, `{"exp":0,"iss":1}`, invalid},
			{open, `{` + good + `,` + good + `}`, invalid}, {open, `{"x":1,"x":2,` + good + `}`, ""},
			{open, `{` + good + `}x`, invalid}, {open, `{` + good + `}{}`, invalid}, {open, `[` + in(60) + `]`, invalid}, {open, `null`, invalid}, {open, `"x"`, invalid}, {open, `5`, invalid}, {open, `junk`, invalid}, {open, ``, invalid},
		} {
			if got := tt.v.refuse(token(tt.payload)); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.payload, got, tt.want)
			}
		}
	})
}

// FuzzVerifier looks for panics, and for anything accepted that was not signed.
func FuzzVerifier(f *testing.F) {
	v := &verifier{secret: []byte(secret), skew: 30}
	f.Add(`{"alg":"HS256"}`, `{"exp":99999999999,"aud":["a"],"iss":"b","nbf":1}`, "x")
	f.Add(`{"alg":"none"}`, `{"exp":1}`, "")
	f.Fuzz(func(t *testing.T, header, payload, signature string) {
		forged := b64(header) + "." + b64(payload) + "." + b64(signature)
		if v.refuse(forged) == "" && forged != sign(secret, header, payload, sha256.New) {
			t.Errorf("%q is accepted", forged)
		}
		_ = v.refuse(sign(secret, header, payload, sha256.New))
		_ = v.refuse(signature)
	})
}
