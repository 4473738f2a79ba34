package agent

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Variables that programs take the address of a proxy from. The names are the
// reference's.
var (
	httpProxyVariables = []string{
		"HTTP_PROXY", "HTTPS_PROXY", "WS_PROXY", "WSS_PROXY", "http_proxy", "https_proxy", "ws_proxy", "wss_proxy",
		"YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "NPM_CONFIG_HTTP_PROXY", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_PROXY",
		"npm_config_http_proxy", "npm_config_https_proxy", "npm_config_proxy",
		"BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY", "PIP_PROXY", "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY",
	}
	anyProxyVariables = []string{"ALL_PROXY", "FTP_PROXY", "all_proxy", "ftp_proxy"}
	noProxyVariables  = []string{"NO_PROXY", "no_proxy", "NPM_CONFIG_NOPROXY", "npm_config_noproxy", "BUNDLE_NO_PROXY"}
)

// localNetworks go past the proxy where a command may have them directly.
const localNetworks = "localhost,127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"

// announce sets the variables that lead a command's programs to its proxy. The
// ports are those on 127.0.0.1; socks is 0 if there is only HTTP.
func announce(env map[string]string, web, socks uint16, localOK bool) {
	address := "http://127.0.0.1:" + strconv.Itoa(int(web))
	for _, name := range httpProxyVariables {
		env[name] = address
	}
	if socks != 0 {
		address = "socks5h://127.0.0.1:" + strconv.Itoa(int(socks))
	}
	for _, name := range anyProxyVariables {
		env[name] = address
	}
	around, binding := "", "0"
	if localOK {
		around, binding = localNetworks, "1"
	}
	for _, name := range noProxyVariables {
		env[name] = around
	}
	env["CODEX_NETWORK_PROXY_ACTIVE"] = "1"
	env["CODEX_NETWORK_ALLOW_LOCAL_BINDING"] = binding
	env["NODE_USE_ENV_PROXY"] = "1"
	env["ELECTRON_GET_USE_PROXY"] = "true"
}

// bundleVariables tell programs which file has the certificates that they trust.
// The names are the reference's.
var bundleVariables = []string{
	"SSL_CERT_FILE", "CODEX_CA_CERTIFICATE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT",
	"NODE_EXTRA_CA_CERTS", "NPM_CONFIG_CAFILE", "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "CARGO_HTTP_CAINFO",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "DENO_CERT",
}

// announceBundle has a command's programs trust its proxy's CA.
func announceBundle(env map[string]string, file string) {
	for _, name := range bundleVariables {
		env[name] = file
	}
	env["CODEX_NETWORK_PROXY_CREDENTIAL_BROKER_ACTIVE"] = "1"
}

// What the reference says of an environment that no way leads out of.
var (
	errNoProxy  = errors.New("managed proxy mode requires proxy environment variables")
	errNotLocal = errors.New("managed proxy mode requires parseable loopback proxy endpoints")
	errOutside  = errors.New("proxy endpoint is outside the managed sandbox context")
)

// proxyEndpoints finds the proxies on this machine's loopback that an
// environment names. Variables that name others lead nowhere, which is theirs to
// bear, as long as one is left.
func proxyEndpoints(env map[string]string) ([]proxyEndpoint, error) {
	var found []proxyEndpoint
	named := false
	for _, name := range slices.Concat(httpProxyVariables, anyProxyVariables) {
		value := env[name]
		if value == "" {
			continue
		}
		named = true
		if e, ok := parseEndpoint(value); ok {
			e.variable = name
			found = append(found, e)
		}
	}
	switch {
	case !named:
		return nil, errNoProxy
	case len(found) == 0:
		return nil, errNotLocal
	}
	return found, nil
}

// parseEndpoint splits SCHEME://USER@HOST:PORT/REST, of which only the host is
// needed.
func parseEndpoint(value string) (e proxyEndpoint, ok bool) {
	scheme, rest, found := strings.Cut(value, "://")
	if !found {
		scheme, rest = "http", value
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	end := len(value) - len(rest) + len(authority)
	e.before, e.after = value[:end-len(host)], value[end:]
	host, port, found := strings.Cut(host, ":")
	if !found {
		port = defaultPorts[strings.ToLower(scheme)]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	e.port = uint16(n)
	return e, err == nil && n > 0 && (host == "127.0.0.1" || strings.EqualFold(host, "localhost"))
}

var defaultPorts = map[string]string{
	"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21",
	"socks4": "1080", "socks4a": "1080", "socks5": "1080", "socks5h": "1080",
}
