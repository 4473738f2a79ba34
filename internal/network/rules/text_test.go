package rules

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for word, want := range map[string]string{
		"pypi.org": "allow pypi.org", "*.x.org:443,8000-8100/tls": "allow *.x.org:443,8000-8100/tls", "*": "allow *", "*/tcp,udp": "allow */tcp,udp",
		"10.1.0.0/16:22": "allow 10.1.0.0/16:22", "10.1.0.0/16/tcp": "allow 10.1.0.0/16/tcp", "10.1.1.1:22/tcp": "allow 10.1.1.1:22/tcp",
		"fd00::/8": "allow fd00::/8", "[fd00::/8]": "allow fd00::/8", "[fd00::/8]:22/tcp": "allow [fd00::/8]:22/tcp", "::1/tcp": "allow ::1/tcp",
		"2606:4700::/32:443": "allow [2606:4700::/32]:443", "[2606:4700::]/32:443/tls": "allow [2606:4700::/32]:443/tls", "[2606:4700::]/32": "allow 2606:4700::/32",
	} {
		if r, err := Parse(word, false); err != nil || r.String() != want {
			t.Errorf("%q is %q, %v", word, r, err)
		}
		if r, err := Parse(word, true); err != nil || len(r.Allow) != 0 || !strings.HasPrefix(r.String(), "deny ") {
			t.Errorf("%q denies %q, %v", word, r, err)
		}
	}
	for _, word := range []string{"", ":443", "x:", "x:0", "x:1-", "x:2-1", "x:65536", "x/sctp", "x/tcp,", "x/", "[x]:1", "[::1", "::1]:2", "[::1]2", "a b", "10.0.0.0/33", "10.0.0.1/8", "x:22/icmp", "a,b", "http://x", "[::/8]/8", "[::1]x/8", "::/8:", "::/8:1:2", "[::]/8:0"} {
		if r, err := Parse(word, false); err == nil {
			t.Errorf("%q is %q", word, r)
		}
	}
	for word, want := range map[string]string{
		"https://pypi.org": "it is a URL; write the name in it alone", "10.1.0.0/33": `the length of its prefix, "33", is not from 0 to 32`,
		"pypi.org:90-80": `"90-80" is reversed: the lower port comes first, as in "80-90"`, "fd00::/8x": `the length of its prefix, "8x", is not from 0 to 128`,
		"10.0.0.1/8:22": `"10.0.0.1/8": it has bits beyond its length; was 10.0.0.0/8 meant?`, "::1:x:2": "it is neither an address nor a prefix",
	} {
		if _, err := Parse(word, false); err == nil || err.Error() != want {
			t.Errorf("%q: %v, and not %s", word, err, want)
		}
	}
}

func TestARuleShowsNoSecret(t *testing.T) {
	for want, c := range map[string]*Credential{
		"allow x with Authorization from program vault":                      {SecretCommand: []string{"vault", "--token=secret"}},
		"allow x with X-Key from file /run/key":                              {Header: "X-Key", Format: "secret {secret}", SecretFile: "/run/key"},
		`allow x with basic authentication as "git" from variable GIT_TOKEN`: {BasicUser: "git", SecretEnv: "GIT_TOKEN", Placeholder: "secret"},
	} {
		if got := (Rule{Allow: []string{"x"}, Credential: c}).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Ports in JSON are as in the configuration, and notes of earlier versions are read.
func TestPortsInJSON(t *testing.T) {
	text, err := json.Marshal(Rule{Allow: []string{"x"}, Ports: []Ports{{443, 443}, {8000, 8100}}})
	if want := `{"allow":["x"],"ports":[443,"8000-8100"]}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, and not %s", text, err, want)
	}
	for text, want := range map[string]Ports{
		`443`: {443, 443}, `"443"`: {443, 443}, `"8000-8100"`: {8000, 8100}, `{"first":1,"last":65535}`: {1, 65535},
	} {
		var p Ports
		if err := json.Unmarshal([]byte(text), &p); err != nil || p != want {
			t.Errorf("%s is %v, %v", text, p, err)
		}
	}
	for _, text := range []string{`0`, `65536`, `-1`, `1.5`, `true`, `[1]`, `"9-8"`, `"x"`, `{"first":"1"}`} {
		var p Ports
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s is %v", text, p)
		}
	}
}
