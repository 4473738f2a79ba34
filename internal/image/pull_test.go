package image

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
)

// login makes a docker config.json for the test.
func login(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func auths(host, pair string) string {
	return `{"auths":{"` + host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte(pair)) + `"}},"credsStore":"x"}`
}

func TestPull(t *testing.T) {
	for name, r := range map[string]*registry{
		"open":  {},
		"token": {password: "pass:word"},
		"basic": {password: "pass:word", basic: true},
	} {
		r.image = makeImage(t, rootfs(t))
		t.Run(name, func(t *testing.T) {
			r.start(t)
			login(t, auths(r.host, "me:pass:word"))
			eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
				p := &recorder{}
				img, err := Pull(ctx, c, r.host+"/thing:1", p)
				if err != nil {
					t.Fatal(err)
				}
				if want := r.host + "/thing:1"; img.Name() != want || p.steps[0] != "pulling "+want {
					t.Errorf("%s, %v", img.Name(), p.steps)
				}
				if n := p.bytes[sum(r.image.layer)[:12]]; n != int64(len(r.image.layer)) {
					t.Errorf("progress: %v", p.bytes)
				}
				check(t, ctx, c, img.Name())
				if _, err := Pull(ctx, c, r.host+"/thing@sha256:"+sum(r.image.manifest), nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestPullErrors(t *testing.T) {
	secret := &registry{password: "x"}
	secret.image = makeImage(t, rootfs(t))
	secret.start(t)
	open := &registry{image: secret.image}
	open.start(t)
	foreign := &registry{image: testImage{layer: []byte("no gzip"), config: secret.image.config}}
	foreign.image.manifest = []byte(strings.ReplaceAll(string(secret.image.manifest), sum(secret.image.layer), sum(foreign.image.layer)))
	foreign.start(t)
	for _, test := range []struct{ ref, want string }{
		{"A b", `pull the image: the name "A b" is not valid: invalid reference format`},
		{open.host + "/thing:2", "the registry does not have it for this machine"},
		{open.host + "/other:1", "the registry does not have it for this machine"},
		{secret.host + "/thing:1", "the registry wants other credentials; use docker login"},
		{foreign.host + "/thing:1", "pull the image " + foreign.host + "/thing:1: "},
		{"127.0.0.1:1/thing:1", "connection refused"},
	} {
		login(t, auths(secret.host, "me:wrong"))
		eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
			_, err := Pull(ctx, c, test.ref, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, test.want)
			}
			if left := leftovers(t, ctx, c); left != nil {
				t.Error(left)
			}
		})
	}
}

func TestPullCancelled(t *testing.T) {
	r := &registry{image: makeImage(t, makeTar(t, file{"a", []byte(strings.Repeat("layer", 1<<16))}))}
	r.stall.Store(true)
	r.start(t)
	eachClient(t, func(t *testing.T, ctx context.Context, c *client.Client) {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		_, err := Pull(ctx, c, r.host+"/thing:1", nil)
		if !errors.Is(err, context.DeadlineExceeded) && !errdefs.IsDeadlineExceeded(err) {
			t.Error(err)
		}
		if left := leftovers(t, context.WithoutCancel(ctx), c); left != nil {
			t.Error(left)
		}
	})
}

func TestNormalize(t *testing.T) {
	for name, want := range map[string]string{
		"busybox":                    "/library/busybox:latest",
		"me/thing:2":                 "/me/thing:2",
		"registry.test:5000/a/b":     "registry.test:5000/a/b:latest",
		"localhost/x":                "localhost/x:latest",
		"exec-server/default:abcdef": "exec-server/default:abcdef",
	} {
		if got, err := Normalize(name); err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "A", "a b", "exec-server/", "exec-server/A b", "a:b:c"} {
		if got, err := Normalize(name); err == nil {
			t.Errorf("%q is %s", name, got)
		}
	}
}

func TestCredentials(t *testing.T) {
	short, err := Normalize("x")
	if err != nil {
		t.Fatal(err)
	}
	central, _, _ := strings.Cut(short, "/") // the registry of short names
	for name, test := range map[string]struct{ config, registry, host, user, secret, err string }{
		"plain":       {auths("r.test:5000", "u:p"), "r.test:5000", "r.test:5000", "u", "p", ""},
		"url":         {auths("https://r.test/v1/", "u:p"), "r.test", "r.test", "u", "p", ""},
		"central":     {auths("https://index."+central+"/v1/", "u:p"), central, "registry-1." + central, "u", "p", ""},
		"not others":  {auths("index.r.test", "u:p"), "r.test", "r.test", "", "", ""},
		"no redirect": {auths("r.test", "u:p"), "r.test", "cdn.test", "", "", ""},
		"token":       {`{"auths":{"r.test":{"identitytoken":"tok"}}}`, "r.test", "r.test", "", "tok", ""},
		"helper":      {`{"auths":{"r.test":{}},"credsStore":"desktop"}`, "r.test", "r.test", "", "", ""},
		"empty":       {"", "r.test", "r.test", "", "", ""},
		"garbage":     {"{", "r.test", "", "", "", "config.json: unexpected end of JSON input"},
		"bad pair":    {auths("r.test", "nothing"), "r.test", "", "", "", "those for r.test are not valid"},
	} {
		login(t, test.config)
		get, err := dockerCredentials(test.registry)
		if test.err != "" {
			if err == nil || !strings.HasSuffix(err.Error(), test.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if user, secret, err := get(test.host); user != test.user || secret != test.secret || err != nil {
			t.Errorf("%s: %s, %s, %v", name, user, secret, err)
		}
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if _, err := dockerCredentials("r.test"); err != nil {
		t.Error(err)
	}
}
