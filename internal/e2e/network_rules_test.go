package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// try is a URL, and what becomes of it.
type try struct {
	url, want string
	// raw is what a program gets that connects to the address without a lookup, if
	// that is something else.
	raw string
}

// served are the names of the tests, with their address.
var served = map[string]string{
	"exact.example":  "151.101.1.1",
	"shared.example": "151.101.1.1", // another name at the same address
	"a.sub.example":  "151.101.2.1",
	"no.sub.example": "151.101.2.2",
	"sub.example":    "151.101.2.3",
	"plain.example":  "151.101.3.1",
	"six.example":    "2a04:4e42::61",
	"lan.example":    "10.1.2.3",
}

func allow(what ...string) rules.Rule { return rules.Rule{Allow: what} }
func deny(what ...string) rules.Rule  { return rules.Rule{Deny: what} }

func onPorts(r rules.Rule, ports ...uint16) rules.Rule {
	for _, p := range ports {
		r.Ports = append(r.Ports, rules.Ports{First: p, Last: p})
	}
	return r
}

func over(r rules.Rule, protocols ...rules.Protocol) rules.Rule {
	r.Protocols = protocols
	return r
}

// ruleKinds are the kinds of rules, each with what it allows and what it does not.
var ruleKinds = []struct {
	kind  string
	mode  rules.Mode
	rules []rules.Rule
	tries []try
}{
	{"mode none", rules.None, []rules.Rule{allow("exact.example")}, []try{
		{"https://exact.example", noName, unreachable},
		{"http://151.101.1.1", unreachable, ""},
		{"http://[2a04:4e42::61]", unreachable, ""},
		{"http://169.254.169.254", unreachable, ""},
	}},
	{"mode rules without any", rules.Rules, nil, []try{
		{"https://exact.example", noName, refusedAt},
		{"http://151.101.1.1", refusedAt, ""},
		{"http://[2a04:4e42::61]", refusedAt, ""},
	}},
	{"mode open", rules.Open, []rules.Rule{deny("no.sub.example"), deny("93.184.216.0/24")}, []try{
		{"https://exact.example", fetched, ""},
		{"http://151.101.1.1:8080", fetched, ""},
		{"http://[2a04:4e42::61]", fetched, ""},
		{"https://no.sub.example", noName, cut},
		{"http://93.184.216.34", refusedAt, ""},
		{"http://10.1.2.3", refusedAt, ""},
		{"http://lan.example", noName, refusedAt},
		{"http://192.168.1.1", refusedAt, ""},
		{"http://172.16.0.1", refusedAt, ""},
		{"http://" + testnet.Host.String(), refusedAt, ""},
		{"http://" + testnet.HostPublic.String(), refusedAt, ""},
		{"http://[" + testnet.Host6.String() + "]", refusedAt, ""},
		{"http://169.254.169.254", refusedAt, ""},
		{"http://100.100.100.200", refusedAt, ""},
		{"http://168.63.129.16", refusedAt, ""},
		{"http://[fd00:ec2::254]", refusedAt, ""},
		{"http://[fd20:ce::254]", refusedAt, ""},
		{"http://[64:ff9b::a9fe:a9fe]", refusedAt, ""},
	}},
	{"exact name", rules.Rules, []rules.Rule{allow("exact.example")}, []try{
		{"https://exact.example", fetched, ""},
		{"http://exact.example", fetched, ""},
		{"https://shared.example", noName, cut},
		{"http://shared.example", noName, forbidden},
		{"https://exact.example:8443", refusedAt, ""},
		{"https://151.101.1.1", cut, ""},
		{"http://151.101.1.1", forbidden, ""},
		{"https://a.sub.example", noName, refusedAt},
	}},
	{"suffix", rules.Rules, []rules.Rule{allow("*.sub.example"), deny("no.sub.example")}, []try{
		{"https://a.sub.example", fetched, ""},
		{"https://no.sub.example", noName, refusedAt},
		{"https://sub.example", noName, refusedAt},
	}},
	{"prefix", rules.Rules, []rules.Rule{allow("93.184.0.0/16"), deny("93.184.217.0/24")}, []try{
		{"http://93.184.216.34", fetched, ""},
		{"https://93.184.216.34:8443", fetched, ""},
		{"http://93.184.217.34", refusedAt, ""},
		{"http://93.185.216.34", refusedAt, ""},
	}},
	{"prefix of IPv6", rules.Rules, []rules.Rule{allow("2606:4700::/32"), deny("2606:4700:0:1::/64")}, []try{
		{"http://[2606:4700::1111]", fetched, ""},
		{"http://[2606:4700:0:1::1]", refusedAt, ""},
		{"http://[2606:4701::1]", refusedAt, ""},
	}},
	{"name with IPv6 only", rules.Rules, []rules.Rule{allow("six.example")}, []try{
		{"https://six.example", fetched, ""},
		{"http://[2a04:4e42::62]", refusedAt, ""},
	}},
	{"everything", rules.Rules, []rules.Rule{allow("*")}, []try{
		{"https://exact.example", fetched, ""},
		{"http://[2a04:4e42::61]:8080", fetched, ""},
		{"http://10.1.2.3", refusedAt, ""},
		{"http://169.254.169.254", refusedAt, ""},
	}},
	{"port", rules.Rules, []rules.Rule{onPorts(allow("exact.example"), 8443), onPorts(allow("93.184.216.0/24"), 8080)}, []try{
		{"https://exact.example:8443", fetched, ""},
		{"https://exact.example", refusedAt, ""},
		{"http://93.184.216.34:8080", fetched, ""},
		{"http://93.184.216.34", refusedAt, ""},
	}},
	{"protocol", rules.Rules, []rules.Rule{over(allow("exact.example"), rules.TLS), over(allow("plain.example"), rules.HTTP)}, []try{
		{"https://exact.example", fetched, ""},
		{"http://exact.example", forbidden, ""},
		{"http://plain.example", fetched, ""},
		{"https://plain.example", cut, ""},
	}},
	{"special prefix", rules.Rules, []rules.Rule{allow("10.1.0.0/16"), onPorts(allow("169.254.169.254"), 80), allow("lan.example")}, []try{
		{"http://10.1.2.3", fetched, ""},
		{"https://lan.example", fetched, ""},
		{"http://10.2.2.3", refusedAt, ""},
		{"http://169.254.169.254", fetched, ""},
		{"http://169.254.169.254:8080", refusedAt, ""},
		{"http://169.254.169.253", refusedAt, ""},
	}},
}

// Each kind of rule allows and denies the same to every program, and what is denied
// early is so without a packet to the address or a lookup.
func TestEveryKindOfRuleForEveryProgram(t *testing.T) {
	n, config := newInternet(t)
	for name, address := range served {
		n.DNS.Set(name, time.Hour, address)
	}
	r := toolsRoot(t, config, "mode = \"none\"\n")
	h := r.serveIn(n).connect("/", "")
	program, err := os.ReadFile(filepath.Join(filepath.Dir(bin), "probe"))
	if err != nil {
		t.Fatal(err)
	}
	h.must("fs/writeFile", map[string]any{"path": "file:///workspace/probe", "dataBase64": base64.StdEncoding.EncodeToString(program)})
	h.sh("chmod +x /workspace/probe\n" + trust(n))
	seen := n.Capture(t)
	for _, k := range ruleKinds {
		t.Run(strings.ReplaceAll(k.kind, " ", "-"), func(t *testing.T) {
			r.enforce(rules.Policy{Mode: k.mode, Rules: k.rules})
			for _, try := range k.tries {
				for _, b := range browsers {
					t.Run(b.name+"/"+strings.ReplaceAll(try.url, "//", ""), func(t *testing.T) {
						fetch(t, h, n, seen, b.name, b.script, try)
					})
				}
			}
		})
	}
}
