package httpclient

import (
	"encoding/base64"
	"errors"
	"net"
	neturl "net/url"
	"strings"

	weberrors "github.com/nlnwa/whatwg-url/errors"
	weburl "github.com/nlnwa/whatwg-url/url"
)

// target is where a request goes. URLs are read by the rules that browsers have,
// as the reference does.
type target struct {
	text   string // without user info, with the fragment
	scheme string
	host   string // as in a Host header, without the port
	port   string // never empty
	atPort string // ":PORT" unless it is the scheme's own
	path   string // with the query
	basic  string // value of an Authorization header for the user info, or ""
}

// urlWords has the reference's words for what can be wrong with a URL.
var urlWords = map[weberrors.ErrorType]string{
	weberrors.HostMissing:                 "empty host",
	weberrors.InvalidCredentials:          "empty host",
	weberrors.PortOutOfRange:              "invalid port number",
	weberrors.PortInvalid:                 "invalid port number",
	weberrors.IPv4TooManyParts:            "invalid IPv4 address",
	weberrors.IPv4NonNumericPart:          "invalid IPv4 address",
	weberrors.IPv4OutOfRangePart:          "invalid IPv4 address",
	weberrors.IPv6Unclosed:                "invalid IPv6 address",
	weberrors.MissingSchemeNonRelativeURL: "relative URL without a base",
	weberrors.DomainToASCII:               "invalid international domain name",
	weberrors.DomainInvalidCodePoint:      "invalid international domain name",
	weberrors.HostInvalidCodePoint:        "invalid domain character",
}

func urlError(err error) error {
	kind := weberrors.Type(err)
	if words, ok := urlWords[kind]; ok {
		return errors.New(words)
	}
	if strings.HasPrefix(string(kind), "IPv6") {
		return errors.New("invalid IPv6 address")
	}
	return errors.New("invalid URL")
}

func parseTarget(text string) (*target, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		return nil, urlError(err)
	}
	return targetOf(u)
}

// follow resolves a redirect's location.
func (t *target) follow(location string) (*target, error) {
	u, err := weburl.ParseRef(t.text, location)
	if err != nil {
		return nil, urlError(err)
	}
	return targetOf(u)
}

func targetOf(u *weburl.Url) (*target, error) {
	t := &target{scheme: u.Scheme(), host: u.Hostname(), port: u.Port(), path: u.Pathname() + u.Search()}
	if t.port != "" {
		t.atPort = ":" + t.port
	} else if t.scheme == "https" {
		t.port = "443"
	} else {
		t.port = "80"
	}
	if _, q, ok := strings.Cut(u.Href(true), "?"); ok && q == "" {
		t.path += "?" // Search leaves out an empty query
	}
	user, password := u.Username(), u.Password()
	if user != "" || password != "" {
		t.basic = basic(decode(user), decode(password))
		u = u.Clone()
		u.SetUsername("")
		u.SetPassword("")
	}
	t.text = u.Href(false)
	return t, nil
}

func decode(s string) string {
	if d, err := neturl.PathUnescape(s); err == nil {
		return d
	}
	return s
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// authority is what a Host header carries.
func (t *target) authority() string { return t.host + t.atPort }

// address is what is dialled.
func (t *target) address() string { return net.JoinHostPort(t.name(), t.port) }

// name is the host without the brackets of IPv6.
func (t *target) name() string { return strings.Trim(t.host, "[]") }

// sameHost tells whether credentials for t may go to next too.
func (t *target) sameHost(next *target) bool { return t.host == next.host && t.port == next.port }
