package config

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// examples are the tables that defaults.toml has as comments.
var examples = []string{"[environment.NAME]", "[[profile.default.network.rule]]"}

// example is one of them, without the marks.
func example(t *testing.T, table string) string {
	t.Helper()
	_, rest, found := strings.Cut(string(defaults), "\n# "+table+"\n")
	if !found {
		t.Fatalf("there is no example of %s", table)
	}
	body, _, _ := strings.Cut(rest, "\n\n")
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
	}
	return table + "\n" + strings.Join(lines, "\n") + "\n"
}

// The example is one that works, once it is told one of the places of the key.
func TestTheExampleOfAnEnvironmentIsValid(t *testing.T) {
	text := regexp.MustCompile(`(?m)^(key_env|key_command) = .*$`).ReplaceAllString(example(t, "[environment.NAME]"), "")
	c, err := load(t, "version = 1\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Environment{"NAME": {
		Remote: "https://registry.example", EnvironmentID: "NAME", Transport: Noise, Profile: "default",
		Key: Key{KeyFile: "/etc/exec-server/NAME.key"},
	}}
	if diff := cmp.Diff(want, c.Environments); diff != "" {
		t.Error(diff)
	}
}

func TestEnvironmentsTakeDefaultsFromRemote(t *testing.T) {
	c, err := load(t, `
version = 1
default_profile = "small"
listen.url = "none"
[profile.small]
[profile.big]
[remote]
url = "https://r.example/base/"
key_env = "R_KEY"
proxy = "http://user:word@proxy:3128"
ca_file = "/ca.pem"
[environment.a]
[environment."b.2"]
remote = "http://127.0.0.1:80"
environment_id = "other"
profile = "big"
key_command = ["key", "b"]
proxy = "https://p"
no_proxy = "x"
ca_file = "/b.pem"
[environment.c]
transport = "direct"
aws_region = "eu-central-1"
`)
	if err != nil {
		t.Fatal(err)
	}
	way := Way{Proxy: "http://user:word@proxy:3128", CAFile: "/ca.pem"}
	want := map[string]Environment{
		"a": {Remote: "https://r.example/base/", EnvironmentID: "a", Transport: Noise, Profile: "small", Key: Key{KeyEnv: "R_KEY", KeyCommand: []string{}}, Way: way},
		"b.2": {Remote: "http://127.0.0.1:80", EnvironmentID: "other", Transport: Noise, Profile: "big",
			Key: Key{KeyCommand: []string{"key", "b"}}, Way: Way{Proxy: "https://p", NoProxy: "x", CAFile: "/b.pem"}},
		"c": {Remote: "https://r.example/base/", EnvironmentID: "c", Transport: Direct, Profile: "small", AWSRegion: "eu-central-1", Way: way},
	}
	if diff := cmp.Diff(want, c.Environments); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsOfEnvironments(t *testing.T) {
	const v, e = "version = 1\n", "version = 1\n[environment.a]\nremote = 'https://r'\nkey_env = 'K'\n"
	const url = " is no http or https URL with a host, without a user, a query and a fragment"
	for text, want := range map[string]string{
		v + "[environment.a]":                                "2:2: environment.a: remote is missing; it is the base URL of the registry",
		v + "environment.a.key_env = 'K'":                    "2:1: environment.a: remote is missing; it is the base URL of the registry",
		v + "[environment.a]\nremote = 'https://r'":          "2:2: environment.a: it needs one of key_file, key_env and key_command",
		v + "[environment.'a b']\nremote = 'https://r'":      `2:2: environment.a b: "a b" is no name; use ` + nameHint,
		v + "[environment.a]\nremote = 'r'":                  `3:1: environment.a.remote: "r"` + url,
		v + "[environment.a]\nremote = 'ftp://r'":            `3:1: environment.a.remote: "ftp://r"` + url,
		v + "[environment.a]\nremote = 'https://u:secret@r'": `3:1: environment.a.remote: it` + url,
		v + "[environment.a]\nremote = 'https://r/#x'":       `3:1: environment.a.remote: "https://r/#x"` + url,
		v + "[remote]\nurl = 'https://r?x'":                  `3:1: remote.url: "https://r?x"` + url,
		v + "[remote]\nkey_file = 'x'":                       `3:1: remote.key_file: "x" is no absolute path of a file`,
		v + "[remote]\nproxy = 'ftp://x:secret@y'":           `3:1: remote.proxy: it is neither the URL of a proxy (http, https, socks5, socks5h) nor "none"`,
		v + "[remote]\ntoken = 'x'":                          `3:1: remote.token: there is no such key`,
		v + "[remote]\nkey_file = '/x'\nkey_env = 'X'":       `3:1: remote.key_file: only one of key_file, key_env and key_command can be given`,
		e + "environment_id = 'a/b'":                         `5:1: environment.a.environment_id: "a/b" is not 1 to 256 of A-Z a-z 0-9 . _ ~ : @ -`,
		e + "transport = 'ws'":                               `5:1: environment.a.transport: "ws" is none of noise, direct`,
		e + "transport = 'direct'":                           `4:1: environment.a.key_env: has no meaning with transport = "direct", which is signed with AWS credentials`,
		e + "aws_service = 'x'":                              `5:1: environment.a.aws_service: has no meaning with transport = "noise"`,
		e + "profile = 'x'":                                  `5:1: environment.a.profile: there is no [profile.x]`,
		e + "key_file = '/x'":                                `5:1: environment.a.key_file: only one of key_file, key_env and key_command can be given`,
		e + "ca_file = 'x'":                                  `5:1: environment.a.ca_file: "x" is no absolute path of a file`,
		e + "url = 'x'":                                      "5:1: environment.a.url: there is no such key; it is remote here",
		e + "keyfile = 'x'":                                  "5:1: environment.a.keyfile: there is no such key; did you mean key_file?",
		e + "colour = 1":                                     "5:1: environment.a.colour: there is no such key",
		e + "no_proxy = 1":                                   "5:12: environment.a.no_proxy: cannot decode TOML integer into a string",
		e + "[environment.b]\nremote='HTTPS://R:0443'\nkey_env='K'\nenvironment_id='a'": "5:2: environment.b: it is the same environment of the same registry as a",
		e + "[environment.b]\nremote='https://r/'\nkey_env='K'\nenvironment_id='a'":     "5:2: environment.b: it is the same environment of the same registry as a",
		v + "[environment.a]\nremote='https://r'\nkey_env='sk-secret'":                  "4:1: environment.a.key_env: it is no name of a variable",
		v + "[environment.a]\nremote='https://r'\nkey_command=['']":                     "4:1: environment.a.key_command: it is not a program and its arguments",
		v + "[environment.a]\nremote='https://r'\nkey_command='secret'":                 `4:13: environment.a.key_command: cannot decode TOML string into a list of strings; write it in brackets, as in ["text"]`,
	} {
		_, err := load(t, text)
		if err == nil {
			t.Errorf("%q loads", text)
			continue
		}
		if _, got, _ := strings.Cut(err.Error(), ".toml:"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestCompleteSaysWhatIsWrong(t *testing.T) {
	c := Default()
	for want, e := range map[string]Environment{
		"remote is missing; it is the base URL of the registry":                                   {},
		`profile: there is no [profile.x]`:                                                        {Remote: "https://r", Profile: "x"},
		`key_file: "k" is no absolute path of a file`:                                             {Remote: "https://r", Key: Key{KeyFile: "k"}},
		`remote: "x" is no http or https URL with a host, without a user, a query and a fragment`: {Remote: "x"},
	} {
		if _, err := c.Complete("a", e); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", e, err, want)
		}
	}
	e, err := c.Complete("a", Environment{Remote: "https://r"})
	if err != nil || e.EnvironmentID != "a" || e.Transport != Noise || e.Profile != "default" {
		t.Errorf("%+v, %v", e, err)
	}
}
