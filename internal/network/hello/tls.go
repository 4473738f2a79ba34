package hello

import (
	"net/netip"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// Numbers of RFC 8446 and of the registry of TLS.
const (
	recordHandshake = 22
	recordMax       = 1 << 14
	clientHello     = 1

	extServerName = 0
	extALPN       = 16
	extECH        = 0xfe0d
	extESNI       = 0xffce // what ECH was in its drafts
)

// parseTLS puts a ClientHello together, of however many records, and reads it.
func parseTLS(b []byte) (Hello, bool) {
	bad := Hello{Kind: TLS}
	var message []byte
	for {
		switch {
		case len(b) > 0 && b[0] != recordHandshake:
			return bad, true
		case len(b) > 1 && b[1] != 3:
			if message == nil {
				return Hello{}, true // no TLS that anybody speaks
			}
			return bad, true
		case len(b) < 5:
			return bad, false
		}
		size := int(b[3])<<8 | int(b[4])
		if size == 0 || size > recordMax {
			return bad, true
		}
		before := len(message)
		b = b[5:]
		message = append(message, b[:min(size, len(b))]...)
		if len(message) > 0 && message[0] != clientHello {
			return bad, true
		}
		if len(message) >= 4 {
			want := 4 + (int(message[1])<<16 | int(message[2])<<8 | int(message[3]))
			// A second message may not follow in the same record: nobody sends that, and
			// it could be read as another hello.
			if want > Max || before+size > want {
				return bad, true
			}
			if len(message) == want {
				return parseClientHello(message[4:]), true
			}
		}
		if len(b) < size {
			return bad, false
		}
		b = b[size:]
	}
}

// parseClientHello reads the body of a ClientHello.
func parseClientHello(body []byte) Hello {
	h := Hello{Kind: TLS}
	r := reader{rest: body}
	r.take(2 + 32) // version and random
	r.vector(1)    // session id
	r.vector(2)    // cipher suites
	r.vector(1)    // compression
	if r.empty() {
		return h // of a client before extensions
	}
	extensions := r.vector(2)
	if !r.empty() {
		return Hello{Kind: TLS}
	}
	seen := map[int]bool{}
	for !extensions.empty() {
		kind := extensions.number(2)
		data := extensions.vector(2)
		if seen[kind] {
			return Hello{Kind: TLS}
		}
		seen[kind] = true
		switch kind {
		case extServerName:
			h.Name = serverName(data)
		case extALPN:
			list := data.vector(2)
			for !list.empty() {
				h.ALPN = append(h.ALPN, string(list.vector(1).rest))
			}
			if list.bad || !data.empty() {
				return Hello{Kind: TLS}
			}
		case extECH, extESNI:
			h.Hidden = true
		}
	}
	if extensions.bad || r.bad {
		return Hello{Kind: TLS}
	}
	return h
}

// serverName reads the extension that names the server: one name, and nothing else.
func serverName(data *reader) string {
	list := data.vector(2)
	kind := list.number(1)
	text := string(list.vector(2).rest)
	if data.bad || list.bad || !data.empty() || !list.empty() || kind != 0 {
		return ""
	}
	if _, err := netip.ParseAddr(text); err == nil || strings.HasSuffix(text, ".") {
		return "" // RFC 6066 allows neither
	}
	name, _ := address.Name(text)
	return name
}
