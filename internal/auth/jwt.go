package auth

import (
	"math"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// verifier accepts JSON Web Tokens that were signed with the secret (HS256).
type verifier struct {
	secret           []byte
	issuer, audience string // "" is anything
	skew             int64  // seconds
}

// The library splits, decodes and verifies; what claims mean is the protocol's.
var parser = jwt.NewParser(
	jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
	jwt.WithStrictDecoding(), // one token has one spelling
	jwt.WithoutClaimsValidation(),
)

func (v *verifier) refuse(token string) string {
	var c claims
	_, err := parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return v.secret, nil })
	now := time.Now().Unix()
	switch {
	case err != nil || c.exp == nil:
		return "invalid websocket jwt"
	case now > plus(*c.exp, v.skew):
		return "expired websocket jwt"
	case c.nbf != nil && now < minus(*c.nbf, v.skew):
		return "websocket jwt is not valid yet"
	case v.issuer != "" && (c.iss == nil || *c.iss != v.issuer):
		return "websocket jwt issuer mismatch"
	case v.audience != "" && !slices.Contains(c.aud, v.audience):
		return "websocket jwt audience mismatch"
	}
	return ""
}

// plus and minus stop at the ends of the range; n is not negative.
func plus(t, n int64) int64 {
	if t > math.MaxInt64-n {
		return math.MaxInt64
	}
	return t + n
}

func minus(t, n int64) int64 {
	if t < math.MinInt64+n {
		return math.MinInt64
	}
	return t - n
}
