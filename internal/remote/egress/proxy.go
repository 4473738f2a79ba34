package egress

import (
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxies returns what chooses the proxy for a URL.
func proxies(o Options, getenv func(string) string) (func(*url.URL) (*url.URL, error), error) {
	first := func(names ...string) (value, name string) {
		for _, name := range names {
			if v := getenv(name); v != "" {
				return v, name
			}
		}
		return "", ""
	}
	var c httpproxy.Config
	for _, p := range []struct {
		to    *string
		names []string
	}{
		{&c.HTTPSProxy, []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}},
		{&c.HTTPProxy, []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}},
	} {
		text, name := o.ProxyURL, "the proxy"
		switch text {
		case "none":
			continue
		case "":
			text, name = first(p.names...)
		}
		u, err := parseProxy(text, name)
		if err != nil {
			return nil, err
		}
		*p.to = u
	}
	if c.NoProxy = o.NoProxy; c.NoProxy == "" {
		c.NoProxy, _ = first("NO_PROXY", "no_proxy")
	}
	return c.ProxyFunc(), nil
}

// parseProxy checks the URL of a proxy. Its errors tell the name of what has it,
// never what it is: it may hold a password.
func parseProxy(text, name string) (string, error) {
	if text == "" {
		return "", nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("%s: it is not the URL of a proxy", name)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u.String(), nil
	}
	return "", fmt.Errorf("%s: the scheme has to be http, https, socks5 or socks5h", name)
}
