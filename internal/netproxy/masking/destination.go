package masking

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// Destination is where a credential may go.
type Destination struct {
	scheme string
	host   string // in lower case; behind a wildcard if below is set
	below  bool   // any name below host, and
	self   bool   // host too
	port   uint16
	path   string // without a final slash
}

var errDestination = errors.New("not a destination for credentials")

// ParseDestination reads a URL prefix: https, or http to this machine's loopback.
// The host may begin with "*." for what is below a name, or "**." for that name
// too. The path ends at a slash.
func ParseDestination(s string) (d Destination, err error) {
	// A star is no part of a URL's host for every parser.
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return d, errDestination
	}
	if rest, d.self = strings.CutPrefix(rest, "**."); d.self {
		d.below = true
	} else {
		rest, d.below = strings.CutPrefix(rest, "*.")
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") {
		return d, errDestination
	}
	h, ok := policy.ParseHost(u.Hostname())
	if !ok || d.below && h.Addr().IsValid() {
		return d, errDestination
	}
	d.scheme, d.host, d.path = u.Scheme, h.String(), strings.TrimRight(u.EscapedPath(), "/")
	switch {
	case d.scheme == "https":
		d.port = 443
	case d.scheme == "http" && !d.below && loopback(h):
		d.port = 80
	default:
		return d, errDestination
	}
	if u.Port() != "" {
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return d, errDestination
		}
		d.port = uint16(n)
	}
	return d, nil
}

func loopback(h policy.Host) bool {
	return h.String() == "localhost" || h.Addr().IsValid() && h.Addr().Unmap().IsLoopback()
}

// at says whether anything at a port of a host is within the destination.
func (d *Destination) at(scheme string, host policy.Host, port uint16) bool {
	if d.scheme != scheme || d.port != port {
		return false
	}
	name := host.String()
	if d.below && !host.Addr().IsValid() && strings.HasSuffix(name, "."+d.host) {
		return true
	}
	return (!d.below || d.self) && name == d.host
}

// covers says whether a path is within the destination's. One that a server could
// take for another one is not.
func (d *Destination) covers(u *url.URL) bool {
	for segment := range strings.FieldsFuncSeq(u.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if segment == "." || segment == ".." {
			return false
		}
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), d.path)
	return ok && (rest == "" || rest[0] == '/')
}
