package config

import (
	"errors"
	"net/netip"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// Network is what all environments' ways out have in common.
type Network struct {
	Resolvers []string `toml:"resolvers"`
	// VEthV4 and VEthV6 are the prefixes that interfaces get their addresses from.
	VEthV4 string `toml:"veth_v4"`
	VEthV6 string `toml:"veth_v6"`
}

// ProfileNetwork is what environments of a profile may reach.
type ProfileNetwork struct {
	Mode           string `toml:"mode"`
	VEth           bool   `toml:"veth"`
	Intercept      bool   `toml:"intercept"`
	Bandwidth      Size   `toml:"bandwidth"`
	Volume         Size   `toml:"volume"`
	Connections    int    `toml:"connections"`
	ConnectionRate int    `toml:"connection_rate"`
	Rules          []Rule `toml:"rule"`
}

// Rule allows or denies.
type Rule struct {
	Allow      []string    `toml:"allow"`
	Deny       []string    `toml:"deny"`
	Ports      []Ports     `toml:"ports"`
	Protocols  []string    `toml:"protocols"`
	Credential *Credential `toml:"credential"`
}

// Credential is what is added to requests, and where its secret is.
type Credential struct {
	Header        string   `toml:"header"`
	Format        string   `toml:"format"`
	BasicUser     string   `toml:"basic_user"`
	SecretFile    string   `toml:"secret_file"`
	SecretEnv     string   `toml:"secret_env"`
	SecretCommand []string `toml:"secret_command"`
	Placeholder   string   `toml:"placeholder"`
}

// Ports is a port, as a number, or a range of them: "8000-8100".
type Ports struct{ rules.Ports }

// UnmarshalText reads what rules.ParsePorts does.
func (p *Ports) UnmarshalText(text []byte) (err error) {
	p.Ports, err = rules.ParsePorts(string(text))
	return err
}

// Policy is the profile's policy as the rest of the server has it.
func (n ProfileNetwork) Policy() rules.Policy {
	p := rules.Policy{Mode: rules.Mode(n.Mode), VEth: n.VEth, Intercept: n.Intercept, Limits: rules.Limits{
		BytesPerSecond: int64(n.Bandwidth), Bytes: int64(n.Volume), Connections: n.Connections, ConnectionsPerSecond: n.ConnectionRate,
	}}
	for _, r := range n.Rules {
		rule := rules.Rule{Allow: r.Allow, Deny: r.Deny}
		for _, ports := range r.Ports {
			rule.Ports = append(rule.Ports, ports.Ports)
		}
		for _, protocol := range r.Protocols {
			rule.Protocols = append(rule.Protocols, rules.Protocol(protocol))
		}
		if r.Credential != nil {
			c := rules.Credential(*r.Credential)
			rule.Credential = &c
		}
		p.Rules = append(p.Rules, rule)
	}
	return p.Clone()
}

// validate finds the first bad value; key is the table's own key.
func (n ProfileNetwork) validate(key string) *problem {
	if n.VEth && rules.Mode(n.Mode) == rules.None {
		return bad(key+".veth", "it needs the mode rules or open")
	}
	_, err := rules.Compile(n.Policy())
	wrong, ok := errors.AsType[*rules.Error](err)
	if !ok {
		return nil // what Compile gives is one, or nil
	}
	p := bad(key, "%s", wrong.Text)
	if wrong.Rule >= 0 {
		p.key, p.element = key+".rule", wrong.Rule
	}
	if wrong.Key != "" {
		p.key += "." + wrong.Key
	}
	return p
}

// Addresses are the resolvers' addresses with their ports; those that are none are
// left out, which no file that loads has.
func (n Network) Addresses() []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range n.Resolvers {
		if a, ok := resolver(text); ok {
			all = append(all, a)
		}
	}
	return all
}

func (n Network) validate() *problem {
	for _, text := range n.Resolvers {
		if _, ok := resolver(text); !ok {
			return bad("network.resolvers", `%q is neither "IP" nor "IP:PORT"`, text)
		}
	}
	if p := n.V4(); !p.Addr().Is4() || p.Bits() < 8 || p.Bits() > 28 {
		return bad("network.veth_v4", "%q is no prefix of IPv4 of /8 to /28", n.VEthV4)
	}
	if p := n.V6(); !p.Addr().Is6() || p.Addr().Is4In6() || p.Bits() < 32 || p.Bits() > 112 {
		return bad("network.veth_v6", "%q is no prefix of IPv6 of /32 to /112", n.VEthV6)
	}
	return nil
}

// V4 is the prefix for addresses of IPv4 of interfaces.
func (n Network) V4() netip.Prefix { return prefix(n.VEthV4) }

// V6 is V4 for IPv6.
func (n Network) V6() netip.Prefix { return prefix(n.VEthV6) }

func prefix(text string) netip.Prefix {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

func resolver(text string) (netip.AddrPort, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a.Unmap(), 53), !a.IsUnspecified()
	}
	at, err := netip.ParseAddrPort(text)
	return at, err == nil && at.Port() != 0 && !at.Addr().IsUnspecified()
}
