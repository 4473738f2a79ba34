package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil && !strings.HasPrefix(err.Error(), path+":") {
		t.Fatalf("%v does not begin with the path", err)
	}
	return c, err
}

func TestDefaults(t *testing.T) {
	want := Config{
		Version: 1, Root: "/var/lib/exec-server", Runtime: "containerd", DefaultProfile: "default",
		Log:     Log{"info", "auto"},
		Listen:  Listen{"ws://127.0.0.1:0", "default", "environment", 1, Auth{Mode: "none", MaxClockSkew: Duration{Duration: 30 * time.Second}}},
		Session: Session{Duration{Duration: 80 * time.Second}, Duration{Duration: 80 * time.Second}, 1 << 20},
		Metrics: Metrics{URL: "none"},
		Limits:  Limits{64},
		Network: Network{Resolvers: []string{}, VEthV4: "10.213.0.0/16", VEthV6: "fd65:7865:64::/64"},
		Remote:  Remote{Key: Key{KeyCommand: []string{}}},
		Profiles: map[string]Profile{"default": {
			Env: map[string]string{}, CPUs: 2, Memory: 4 << 30, Pids: 2048, ShmSize: 256 << 20,
			Network: ProfileNetwork{Mode: "none", Connections: 1024},
		}},
	}
	if diff := cmp.Diff(want, Default()); diff != "" {
		t.Error(diff)
	}
	var printed bytes.Buffer
	if err := WriteDefaults(&printed); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, printed.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
	if got, err = load(t, "version = 1\n"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
}

// TestEveryKeyIsPrinted holds the struct and the printed file together, and
// wants a comment above each key.
func TestEveryKeyIsPrinted(t *testing.T) {
	printed := map[string]bool{}
	lines := strings.Split(string(defaults), "\n")
	for _, k := range indexKeys(defaults).keys {
		printed[k.String()] = true
		above := lines[k.line-2]
		if isTable := lines[k.line-1][0] == '['; !isTable && !strings.HasPrefix(above, "#") {
			t.Errorf("%s: no comment above it", k)
		}
	}
	for _, table := range examples {
		for _, k := range indexKeys([]byte(example(t, table))).keys {
			printed[k.String()] = true
		}
	}
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, prefix string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			key := prefix + f.Tag.Get("toml")
			switch {
			case f.Anonymous:
				walk(f.Type, prefix)
			case f.Type == reflect.TypeFor[map[string]Environment]():
				walk(f.Type.Elem(), key+".NAME.")
			case f.Type == reflect.TypeFor[map[string]Profile]():
				walk(f.Type.Elem(), key+".default.")
			case f.Type == reflect.TypeFor[[]Rule](), f.Type == reflect.TypeFor[*Credential]():
				walk(f.Type.Elem(), key+".")
			case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Duration]():
				walk(f.Type, key+".")
			case !printed[key]:
				t.Errorf("%s is not in defaults.toml", key)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
}

func TestLoad(t *testing.T) {
	c, err := load(t, `
version = 1
root = "/srv/x/"
default_profile = "big.one"
[session]
detach = "2m"
output_bytes = 8192
[listen.auth]
mode = "signed-bearer-token"
shared_secret_file = "/run/secret"
audience = "a"
max_clock_skew = "0s"
[profile.default]
cpus = 1
env = { A = "1" }
[profile."big.one"]
memory = "8 GiB"
env.B = "2"
[profile.empty]
`)
	if err != nil {
		t.Fatal(err)
	}
	builtin := Default().Profiles["default"]
	want := Default()
	want.Root, want.DefaultProfile = "/srv/x", "big.one"
	want.Session.Detach.Duration, want.Session.OutputBytes = 2*time.Minute, 8192
	want.Listen.Auth = Auth{Mode: "signed-bearer-token", SharedSecretFile: "/run/secret", Audience: "a"}
	p := builtin
	p.CPUs, p.Env = 1, map[string]string{"A": "1"}
	want.Profiles["default"] = p
	p = builtin
	p.Memory, p.Env = 8<<30, map[string]string{"B": "2"}
	want.Profiles["big.one"] = p
	want.Profiles["empty"] = builtin
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}
