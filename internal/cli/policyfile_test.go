package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// What is printed can be read again, alone and with all around it.
func TestAPolicyFromAFile(t *testing.T) {
	want := rules.Policy{Mode: rules.Rules, Limits: rules.Limits{BytesPerSecond: 5, Bytes: 6, ConnectionsPerSecond: 7}, Rules: []rules.Rule{
		{Allow: []string{"a.example"}, Ports: []rules.Ports{{First: 443, Last: 443}, {First: 8000, Last: 8100}}, Protocols: []rules.Protocol{rules.TLS}},
	}}
	read := func(text string) (rules.Policy, error) { return readPolicy("-", strings.NewReader(text)) }
	for _, v := range []any{want, control.Policy{Name: "policy", Policy: want, Stats: nil}} {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := read(string(text)); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%s is %+v, %v", text, p, err)
		}
	}
	with := func(connections int) rules.Policy {
		return rules.Policy{Mode: rules.Open, Limits: rules.Limits{Connections: connections}}
	}
	for text, want := range map[string]rules.Policy{
		`{"mode":"open"}`:                               with(0),
		`{"mode":"open","connections":0}`:               with(0),
		`{"name":"x", "policy" : {"mode":"open"} }`:     with(0),
		`{"mode":"open","bandwidth":0,"volume":0}`:      with(0),
		"\n" + `{"mode":"open","connections":9}` + "\n": with(9),
	} {
		if p, err := read(text); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%s is %+v, %v", text, p, err)
		}
	}
	path := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(path, []byte(`{"mode":"open"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := readPolicy(path, nil); err != nil || p.Mode != rules.Open {
		t.Errorf("%+v, %v", p, err)
	}
	for text, says := range map[string]string{
		"":                                      "--from -: it is empty",
		"{\n \"mode\": \"open\"":                "--from -:2:15: unexpected end of JSON input",
		"{\"mode\": \"open\",\n  x}":            "--from -:2:3: invalid character 'x'",
		`{"mode":"open"} x`:                     "--from -:1:17: invalid character 'x' after top-level value",
		"{\"mode\":\"open\",\n\"rul\":1}":       `--from -:2:5: unknown field "rul"`,
		"{\"policy\":{\n\"volume\": \"1MiB\"}}": "--from -:2:16: cannot unmarshal string",
		`{"rules":[{"allow":["x"],"ports":["9-8"]}]}`: `--from -: "9-8" is reversed`,
		`[]`:                             "--from -:1:1: cannot unmarshal array",
		strings.Repeat(" ", maxPolicy+1): "--from -: it has more than 4194304 bytes",
	} {
		if p, err := read(text); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%.50q is %+v, %v, and not %s", text, p, err, says)
		}
	}
}

// FuzzPolicyFile reads any file, and says where in it something is wrong.
func FuzzPolicyFile(f *testing.F) {
	for _, text := range []string{`{"mode":"open","rules":[{"allow":["x"],"ports":[1,"2-3"]}]}`, `{"a":1,"policy":{"mode":"open","x":1}}`, `{"policy"`, `[`, `null`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, at, err := parsePolicy([]byte(text))
		if err == nil {
			_, _ = rules.Compile(p)
		} else if at < -1 || at > len(text) {
			t.Errorf("%q is wrong at %d: %v", text, at, err)
		}
	})
}
