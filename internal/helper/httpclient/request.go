package httpclient

import (
	"os"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// Request is what http/request asks for.
type Request struct {
	Method, URL string
	Headers     []Header
	Body        []byte
	Timeout     time.Duration // of the whole request, if Timed
	Timed       bool
	Follow      bool // redirects
}

// Header is one header of a request. If FromEnv is set, the value of the
// variable EnvVar is appended to Value.
type Header struct {
	Name, Value, EnvVar string
	FromEnv             bool
}

// secrets are the variables that a header may not carry: the credentials of the
// harness's own vendor.
var secrets = []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"}

// check decodes what a request says in texts, in the order in which the
// reference complains. Errors are *proto.Error.
func (r *Request) check() (*target, headers, error) {
	if !isToken(r.Method) {
		return nil, nil, proto.BadParams("http/request method is invalid: invalid HTTP method")
	}
	t, err := parseTarget(r.URL)
	if err != nil {
		return nil, nil, proto.BadParams("http/request url is invalid: %s", err)
	}
	if t.scheme != "http" && t.scheme != "https" {
		return nil, nil, proto.BadParams("http/request only supports http and https URLs, got %s", t.scheme)
	}
	var h headers
	for _, header := range r.Headers {
		if !isToken(header.Name) {
			return nil, nil, proto.BadParams("http/request header name is invalid: invalid HTTP header name")
		}
		value, err := header.value()
		if err != nil {
			return nil, nil, err
		}
		if !isValue(value) {
			return nil, nil, proto.BadParams("http/request header value is invalid for %s: failed to parse header value", header.Name)
		}
		h.add(lower(header.Name), value)
	}
	return t, h, nil
}

func (h *Header) value() (string, error) {
	if !h.FromEnv {
		return h.Value, nil
	}
	for _, secret := range secrets {
		if strings.EqualFold(h.EnvVar, secret) {
			return "", proto.BadParams("http/request header %s cannot use executor environment variable %s", h.Name, h.EnvVar)
		}
	}
	switch value, ok := os.LookupEnv(h.EnvVar); {
	case !ok:
		return "", proto.BadParams("http/request header %s requires executor environment variable %s", h.Name, h.EnvVar)
	case value == "":
		return "", proto.BadParams("http/request header %s requires a non-empty executor environment variable %s", h.Name, h.EnvVar)
	default:
		return h.Value + value, nil
	}
}

// outgoing completes the headers of a request's first hop.
func outgoing(t *target, given headers, proxyAuth string) headers {
	var h headers
	if t.basic != "" {
		h.add("authorization", t.basic)
	}
	for _, f := range given {
		if i := h.index(f.name); i >= 0 {
			h[i] = f
		} else {
			h = append(h, f)
		}
	}
	h.setDefault("accept", "*/*")
	if proxyAuth != "" {
		h.setDefault("proxy-authorization", proxyAuth)
	}
	h.setDefault("accept-encoding", "zstd,gzip")
	return h
}
