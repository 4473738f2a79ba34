package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/core/remotes/docker"
)

// dockerCredentials reads what docker login stored for a registry. Credential
// helpers are not run: a registry whose credentials one keeps is used without.
// $DOCKER_CONFIG is the directory of config.json, ~/.docker if it is not set.
func dockerCredentials(registry string) (func(host string) (user, secret string, err error), error) {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = "/root" // a service has no HOME
		}
		dir = filepath.Join(home, ".docker")
	}
	file := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	var config struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &config); err != nil {
			return nil, fmt.Errorf("read the credentials: %s: %w", file, err)
		}
	}
	apiHost, err := docker.DefaultHost(registry)
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	// Not to be given to a host that the registry redirects to.
	only := func(user, secret string) func(string) (string, string, error) {
		return func(host string) (string, string, error) {
			if host != apiHost {
				return "", "", nil
			}
			return user, secret, nil
		}
	}
	for key, entry := range config.Auths {
		// The default registry, the only one whose API has another host than its
		// images' names, has an older host in its key.
		if host := keyHost(key); host != registry && (apiHost == registry || host != "index."+registry) {
			continue
		}
		if entry.IdentityToken != "" { // containerd's sign for a token is no user
			return only("", entry.IdentityToken), nil
		}
		pair, err := base64.StdEncoding.DecodeString(entry.Auth)
		user, secret, ok := strings.Cut(string(pair), ":")
		if err != nil || !ok {
			if entry.Auth == "" {
				continue // a credential helper has it
			}
			return nil, fmt.Errorf("read the credentials: %s: those for %s are not valid", file, key)
		}
		return only(user, strings.TrimRight(secret, "\x00")), nil
	}
	return only("", ""), nil
}

// keyHost is the host of a key of "auths": "host", "host:port" or a URL.
func keyHost(key string) string {
	if u, err := url.Parse(key); err == nil && u.Host != "" {
		return u.Host
	}
	host, _, _ := strings.Cut(key, "/")
	return host
}
