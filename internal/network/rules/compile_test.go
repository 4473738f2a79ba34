package rules

import (
	"fmt"
	"strings"
	"testing"
)

func TestCompileSaysWhatIsWrong(t *testing.T) {
	key := func(change func(*Credential)) Rule {
		c := &Credential{SecretEnv: "S"}
		change(c)
		return Rule{Allow: []string{"x"}, Credential: c}
	}
	for want, r := range map[string]Rule{
		"it needs allow or deny":            {},
		"it has both allow and deny":        {Allow: []string{"a"}, Deny: []string{"b"}},
		`allow: "*.*": it is none`:          {Allow: []string{"*.*"}},
		`allow: "a.*": "*" can only stand`:  {Allow: []string{"a.*"}},
		`allow: "*.": it is none`:           {Allow: []string{"*."}},
		`allow: "1.2.3": it is none`:        {Allow: []string{"1.2.3"}},
		`allow: "0x7f.1": it is none`:       {Allow: []string{"0x7f.1"}},
		`deny: "é.example": the letters`:    {Deny: []string{"é.example"}},
		`deny: "fe80::1%eth0": an address`:  {Deny: []string{"fe80::1%eth0"}},
		`deny: "::ffff:0:0/90": write it`:   {Deny: []string{"::ffff:0:0/90"}},
		`deny: "fd00::1/8": it has bits`:    {Deny: []string{"fd00::1/8"}},
		`ports: "9-8" is no port`:           {Allow: []string{"x"}, Ports: []Ports{{9, 8}}},
		`ports: there are 257`:              {Allow: []string{"x"}, Ports: make([]Ports, 257)},
		`protocols: "quic" is none`:         {Allow: []string{"x"}, Protocols: []Protocol{"quic"}},
		`protocols: icmp needs veth`:        {Allow: []string{"x"}, Protocols: []Protocol{ICMP}},
		`protocols: icmp has no ports`:      {Deny: []string{"x"}, Protocols: []Protocol{ICMP}, Ports: []Ports{{1, 1}}},
		`credential: it needs allow`:        {Deny: []string{"x"}, Credential: &Credential{}},
		`credential: "*" is no name`:        {Allow: []string{"*"}, Credential: &Credential{SecretEnv: "S"}},
		`credential: "10.0.0.1" is no name`: {Allow: []string{"10.0.0.1"}, Credential: &Credential{SecretEnv: "S"}},
		`credential: it can be added over`:  {Allow: []string{"x"}, Protocols: []Protocol{TCP}, Credential: &Credential{}},
		`credential: it needs one of`:       key(func(c *Credential) { c.SecretFile = "/s" }),
		`credential.header:`:                key(func(c *Credential) { c.Header = "a b" }),
		`credential.header: "Connection"`:   key(func(c *Credential) { c.Header = "Connection" }),
		`credential.format: there is`:       key(func(c *Credential) { c.Format = "token" }),
		`credential.format: it has`:         key(func(c *Credential) { c.Format = "{secret}\r\nX: y" }),
		`credential.basic_user: it sets`:    key(func(c *Credential) { c.BasicUser, c.Header = "u", "X" }),
		`credential.basic_user: it is no`:   key(func(c *Credential) { c.BasicUser = "u:p" }),
		`credential.placeholder:`:           key(func(c *Credential) { c.Placeholder = "short" }),
		`credential.secret_file: it is no`:  key(func(c *Credential) { c.SecretEnv, c.SecretFile = "", "key" }),
		`credential.secret_env: it is no`:   key(func(c *Credential) { c.SecretEnv = "sk-123" }),
		`credential.secret_command:`:        key(func(c *Credential) { c.SecretEnv, c.SecretCommand = "", []string{""} }),
	} {
		_, err := Compile(Policy{Mode: Rules, Intercept: true, Rules: []Rule{{Allow: []string{"ok"}}, r}})
		if err == nil || !strings.HasPrefix(err.Error(), "rule 2: "+strings.TrimSpace(want)) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("h%d.example", i))
		}
		return list
	}
	for want, p := range map[string]Policy{
		`mode: "" is none of`:                 {},
		"bandwidth: -1 is less":               {Mode: Open, Limits: Limits{BytesPerSecond: -1}},
		"volume: -1 is less":                  {Mode: Open, Limits: Limits{Bytes: -1}},
		"connections: -1 is less":             {Mode: Open, Limits: Limits{Connections: -1}},
		"connections: 4097 is more than 4096": {Mode: Open, Limits: Limits{Connections: 4097}},
		"connection_rate: -1 is less":         {Mode: Open, Limits: Limits{ConnectionsPerSecond: -1}},
		"rule: there are 1025":                {Mode: Open, Rules: make([]Rule, 1025)},
		"rule 1: the rules have more":         {Mode: Open, Rules: []Rule{{Deny: many(maxEntries + 1)}}},
		"rule 1: credential: to be added to ": {Mode: Open, Rules: []Rule{key(func(*Credential) {})}},
	} {
		if _, err := Compile(p); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestATableDoesNotChangeWithWhatItWasMadeFrom(t *testing.T) {
	p := Policy{Mode: Rules, Intercept: true, Rules: []Rule{{Allow: []string{"x"}, Ports: []Ports{{1, 1}}, Credential: &Credential{SecretEnv: "S"}, Protocols: []Protocol{TLS}}}}
	table := compile(t, p)
	p.Rules[0].Allow[0], p.Rules[0].Ports[0], p.Rules[0].Credential.SecretEnv = "y", Ports{2, 2}, "T"
	got := table.Policy()
	if r := got.Rules[0]; r.Allow[0] != "x" || r.Ports[0].First != 1 || r.Credential.SecretEnv != "S" {
		t.Errorf("%+v", r)
	}
	if d := table.Named(tcp("1.1.1.1", 1, "x"), Said{App: TLS, Name: "x", Pinned: true}); d.Verdict != Allow || d.Credential.SecretEnv != "S" {
		t.Errorf("%+v", d)
	}
}
