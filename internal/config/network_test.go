package config

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestNetworkOfAProfile(t *testing.T) {
	c, err := load(t, `
version = 1
network.resolvers = ["192.0.2.53", "[2001:db8::53]:5353"]
network.veth_v4 = "10.9.0.0/16"
[profile.default.network]
mode = "open"
connections = 7
[profile.a.network]
mode = "rules"
veth = true
intercept = true
bandwidth = "10MiB"
volume = "10GiB"
connection_rate = 50
[[profile.a.network.rule]]
allow = ["api.example"]
ports = [443, "8000-8100"]
protocols = ["tls"]
credential = { header = "X-Key", format = "k {secret}", secret_command = ["key", "a"], placeholder = "placeholder" }
[[profile.a.network.rule]]
deny = ["10.0.0.0/8", "*"]
[[profile.a.network.rule]]
allow = ["git.example"]
[profile.a.network.rule.credential]
basic_user = "git"
secret_file = "/key"
[profile.b]
network = { mode = "rules", rule = [{ allow = ["x.example"], ports = ["22"], protocols = ["tcp"] }, { deny = ["*"] }] }
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]rules.Policy{
		"default": {Mode: rules.Open, Limits: rules.Limits{Connections: 7}},
		"a": {Mode: rules.Rules, VEth: true, Intercept: true, Limits: rules.Limits{BytesPerSecond: 10 << 20, Bytes: 10 << 30, Connections: 1024, ConnectionsPerSecond: 50},
			Rules: []rules.Rule{
				{Allow: []string{"api.example"}, Ports: []rules.Ports{{First: 443, Last: 443}, {First: 8000, Last: 8100}}, Protocols: []rules.Protocol{rules.TLS},
					Credential: &rules.Credential{Header: "X-Key", Format: "k {secret}", SecretCommand: []string{"key", "a"}, Placeholder: "placeholder"}},
				{Deny: []string{"10.0.0.0/8", "*"}},
				{Allow: []string{"git.example"}, Credential: &rules.Credential{BasicUser: "git", SecretFile: "/key"}},
			}},
		"b": {Mode: rules.Rules, Limits: rules.Limits{Connections: 1024}, Rules: []rules.Rule{
			{Allow: []string{"x.example"}, Ports: []rules.Ports{{First: 22, Last: 22}}, Protocols: []rules.Protocol{rules.TCP}}, {Deny: []string{"*"}},
		}},
	}
	for name, policy := range want {
		if diff := cmp.Diff(policy, c.Profiles[name].Network.Policy()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53"), netip.MustParseAddrPort("[2001:db8::53]:5353")}, c.Network.Addresses(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if v4, v6 := c.Network.V4(), c.Network.V6(); v4 != netip.MustParsePrefix("10.9.0.0/16") || v6 != netip.MustParsePrefix("fd65:7865:64::/64") {
		t.Errorf("%v, %v", v4, v6)
	}
}

// The example is one that works, once what excludes the rest is left out.
func TestTheExampleOfARuleIsValid(t *testing.T) {
	text := regexp.MustCompile(`(?m)^(deny|basic_user|secret_env|secret_command) = .*$`).ReplaceAllString(example(t, "[[profile.default.network.rule]]"), "")
	c, err := load(t, "version = 1\nprofile.default.network.intercept = true\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Profiles["default"].Network.Rules; len(got) != 1 || got[0].Credential.Header != "X-Api-Key" {
		t.Errorf("%+v", got)
	}
}

func TestErrorsOfTheNetwork(t *testing.T) {
	const v, r = "version = 1\n", "version = 1\n[[profile.a.network.rule]]\nallow = ['x.y']\n[[profile.a.network.rule]]\n"
	for text, want := range map[string]string{
		v + "network.resolvers = ['dns.example']":               `2:1: network.resolvers: "dns.example" is neither "IP" nor "IP:PORT"`,
		v + "network.resolvers = ['0.0.0.0']":                   `2:1: network.resolvers: "0.0.0.0" is neither "IP" nor "IP:PORT"`,
		v + "network.veth_v4 = '10.0.0.0/29'":                   `2:1: network.veth_v4: "10.0.0.0/29" is no prefix of IPv4 of /8 to /28`,
		v + "network.veth_v4 = 'fd65::/64'":                     `2:1: network.veth_v4: "fd65::/64" is no prefix of IPv4 of /8 to /28`,
		v + "network.veth_v6 = 'fd65::'":                        `2:1: network.veth_v6: "fd65::" is no prefix of IPv6 of /32 to /112`,
		v + "[profile.a.network]\nveth = true":                  "3:1: profile.a.network.veth: it needs the mode rules or open",
		v + "network.resolver = []":                             "2:1: network.resolver: there is no such key; did you mean resolvers?",
		v + "[profile.a.network]\nmode = 'closed'":              `3:1: profile.a.network.mode: "closed" is none of none, rules, open`,
		v + "[profile.a.network]\nveth = 1":                     "3:8: profile.a.network.veth: cannot decode TOML integer into a boolean",
		v + "[profile.a.network]\nbandwidth = '10MB'":           `3:13: profile.a.network.bandwidth: "10MB" is no size; write a number of bytes or a whole number with KiB, MiB, GiB or TiB`,
		v + "[profile.a.network]\nvolume = -1":                  "3:1: profile.a.network.volume: -1 is less than 0",
		v + "[profile.a.network]\nconnections = -1":             "3:1: profile.a.network.connections: -1 is less than 0",
		v + "[profile.a.network]\nconnections = 5000":           "3:1: profile.a.network.connections: 5000 is more than 4096",
		v + "[profile.a.network]\nconnection_rate = -1":         "3:1: profile.a.network.connection_rate: -1 is less than 0",
		v + "[profile.a.network]\nrules = []":                   "3:1: profile.a.network.rules: there is no such key; did you mean rule?",
		r + "alow = ['x']":                                      "5:1: profile.a.network.rule.alow: there is no such key; did you mean allow?",
		r:                                                       "4:3: profile.a.network.rule: it needs allow or deny",
		r + "allow = ['a']\ndeny = ['b']":                       "4:3: profile.a.network.rule: it has both allow and deny; make it two rules",
		r + "allow = ['a b']":                                   `5:1: profile.a.network.rule.allow: "a b": it is none of a name, "*.name", "*", an address and a prefix such as "10.1.0.0/16"`,
		r + "deny = ['x:80']":                                   `5:1: profile.a.network.rule.deny: "x:80": ports stand in a key of their own, ports`,
		r + "allow = ['https://x.y/']":                          `5:1: profile.a.network.rule.allow: "https://x.y/": it is a URL; write the name in it alone`,
		r + "allow = ['10.0.0.0/33']":                           `5:1: profile.a.network.rule.allow: "10.0.0.0/33": the length of its prefix, "33", is not from 0 to 32`,
		r + "deny = ['10.0.0.1/8']":                             `5:1: profile.a.network.rule.deny: "10.0.0.1/8": it has bits beyond its length; was 10.0.0.0/8 meant?`,
		r + "allow = ['x']\nports = [0]":                        `6:1: profile.a.network.rule.ports: "0" is neither a port from 1 to 65535 nor a range such as "8000-8100"`,
		r + "allow = ['x']\nports = [1, '9-8']":                 `6:13: profile.a.network.rule.ports: "9-8" is reversed: the lower port comes first, as in "8-9"`,
		r + "allow = ['x']\nports = 1":                          "6:9: profile.a.network.rule.ports: cannot decode TOML integer into a list of ports; write it in brackets, as in [443]",
		r + "allow = 'x'":                                       `5:9: profile.a.network.rule.allow: cannot decode TOML string into a list of strings; write it in brackets, as in ["text"]`,
		r + "allow = ['x']\nprotocols = ['sctp']":               `6:1: profile.a.network.rule.protocols: "sctp" is none of tcp, tls, http, udp, icmp`,
		r + "allow = ['x']\nprotocols = ['udp']":                "6:1: profile.a.network.rule.protocols: udp needs veth = true",
		r + "allow = ['x']\ncredential.secret_file = '/s'":      `6:1: profile.a.network.rule.credential: to be added to HTTPS it needs intercept = true; protocols = ["http"] is for what is not encrypted`,
		r + "allow = ['x']\ncredential = { secret_files = '' }": "6:16: profile.a.network.rule.credential.secret_files: there is no such key; did you mean secret_file?",
		r + "allow = ['x']\nprotocols = ['http']\n[profile.a.network.rule.credential]\nheader = 'Host'\nsecret_env = 'S'": `8:1: profile.a.network.rule.credential.header: "Host" is no field that can be set`,
		r + "allow = ['x']\nprotocols = ['http']\n[profile.a.network.rule.credential]\nheader = 'X'":                      "7:2: profile.a.network.rule.credential: it needs one of secret_file, secret_env and secret_command",
		v + "[profile.a.network]\nrule = [{ allow = ['x'] },\n { allow = ['*.*'] }]":                                      `4:4: profile.a.network.rule.allow: "*.*": it is none of a name, "*.name", "*", an address and a prefix such as "10.1.0.0/16"`,
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
