// Package hello reads what the first bytes of a connection say: which name a client
// of TLS or HTTP wants. It decides nothing, and of what is not well-formed it
// believes nothing.
package hello

// Max is how many bytes Parse looks at. A ClientHello with keys against quantum
// computers has some 2 KiB, and most servers take heads of 8 to 16 KiB.
const Max = 32 << 10

// Kind is what a connection speaks.
type Kind int

// The kinds.
const (
	Other Kind = iota // neither of those below
	TLS
	HTTP // HTTP/1.x, or what some server may take for it
	H2C  // HTTP/2 without TLS, which is not looked into
)

// Hello is what a client has said first.
type Hello struct {
	Kind Kind
	// Name is the name that it wants, in lower case and without a dot at its end; ""
	// if it said none, or none that can be one, or said it in a way that servers could
	// read otherwise. A name of HTTP may be an address.
	Name string
	// Hidden is set if there may be another name that cannot be seen: an encrypted
	// ClientHello, or what looks like one.
	Hidden bool
	// ALPN are the protocols that a client of TLS offers.
	ALPN []string
}

// Parse reads the first bytes of a connection. It says whether it is done: if not,
// it has to be asked again when there are more of them, from the first one on. Of
// Max bytes it always is.
func Parse(b []byte) (Hello, bool) {
	if len(b) == 0 {
		return Hello{}, false
	}
	parse := parseHTTP
	if b[0] == recordHandshake {
		parse = parseTLS
	}
	h, done := parse(b[:min(len(b), Max)])
	return h, done || len(b) >= Max
}
