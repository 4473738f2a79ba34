package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// Guard lets in who has the right token.
type Guard struct{ accept acceptor }

// acceptor says why a token is refused; "" accepts it.
type acceptor interface{ refuse(token string) string }

// Refuse says, in the protocol's words, why an upgrade with these Authorization
// headers is refused; "" lets it in. The first header counts. A nil Guard lets
// everybody in.
func (g *Guard) Refuse(authorization []string) string {
	if g == nil {
		return ""
	}
	if len(authorization) == 0 {
		return "missing websocket bearer token"
	}
	token, ok := bearer(authorization[0])
	if !ok {
		return "invalid authorization header"
	}
	return g.accept.refuse(token)
}

// bearer returns the token of a "Bearer TOKEN" header.
func bearer(header string) (token string, ok bool) {
	for i := range len(header) {
		if c := header[i]; (c < ' ' || c > '~') && c != '\t' {
			return "", false
		}
	}
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && token != "" && strings.EqualFold(scheme, "bearer")
}

func digest(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// capability is the digest of the only token that is accepted. Comparing digests
// in constant time tells nothing about the token, not even its length.
type capability [sha256.Size]byte

func (c capability) refuse(token string) string {
	got := digest(token)
	if subtle.ConstantTimeCompare(c[:], got[:]) != 1 {
		return "invalid websocket bearer token"
	}
	return ""
}
