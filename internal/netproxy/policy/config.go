package policy

import (
	"errors"
	"maps"
	"slices"

	"github.com/exec-server/exec-server/internal/proto"
)

// MaxMessage bounds a message between the agent and a proxy process, in bytes.
const MaxMessage = 1 << 20

// Config is what a proxy process is told first.
type Config struct {
	// Domains are the rules, as New takes them.
	Domains map[string]string
	// Limited lets only requests through that read.
	Limited bool
	// LocalOK is Policy.LocalOK.
	LocalOK bool
	// HTTP, SOCKS and UDP say which sockets come with the process: a listener of
	// the proxy for HTTP, one for SOCKS5, and the socket of its datagrams.
	HTTP, SOCKS, UDP bool
	// Bridges are ports of this machine's loopback. For each a listener comes
	// with the process, whose connections lead there without any rule.
	Bridges []uint16
	// Steered says that what the command connects to anywhere comes to sockets of the
	// process, behind all others: a listener of connections, one of questions to DNS,
	// and the sockets of its datagrams, for IPv4 and IPv6.
	Steered bool
	// Ask has hosts that no rule covers put to the client.
	Ask bool
	// HTTPProxy, HTTPSProxy and NoProxy, in the form of the environment
	// variables of these names, are another proxy that everything goes through.
	HTTPProxy, HTTPSProxy, NoProxy string
	// Masking is what masking.ParseSecrets reads, as JSON; nil if nothing is masked.
	Masking []byte
}

// Frame is the configuration as a message.
func (c *Config) Frame() proto.Frame {
	f := append(proto.NewFrame(512), `{"method":"config","params":{"domains":{`...)
	for i, name := range slices.Sorted(maps.Keys(c.Domains)) {
		if i > 0 {
			f = append(f, ',')
		}
		f = proto.AppendString(append(proto.AppendString(f, name), ':'), c.Domains[name])
	}
	f = append(f, '}')
	for _, m := range []struct {
		name string
		on   bool
	}{{"limited", c.Limited}, {"localOK", c.LocalOK}, {"http", c.HTTP}, {"socks", c.SOCKS}, {"udp", c.UDP}, {"ask", c.Ask}, {"steered", c.Steered}} {
		f = proto.AppendBool(append(append(append(f, `,"`...), m.name...), `":`...), m.on)
	}
	for _, m := range [][2]string{{"httpProxy", c.HTTPProxy}, {"httpsProxy", c.HTTPSProxy}, {"noProxy", c.NoProxy}} {
		f = proto.AppendString(append(append(append(f, `,"`...), m[0]...), `":`...), m[1])
	}
	f = append(f, `,"bridges":[`...)
	for i, port := range c.Bridges {
		if i > 0 {
			f = append(f, ',')
		}
		f = proto.AppendUint(f, uint64(port))
	}
	f = append(f, ']')
	if c.Masking != nil {
		f = append(append(f, `,"masking":`...), c.Masking...)
	}
	return proto.Frame(append(f, "}}"...)).Seal()
}

var errConfig = errors.New("the first message is no configuration")

// ParseConfig reads what Frame made.
func ParseConfig(body []byte) (Config, error) {
	m, err := proto.ParseMessage(body)
	if err != nil {
		return Config{}, err
	}
	if m.Kind != proto.Notification || m.Method != "config" {
		return Config{}, errConfig
	}
	p := proto.ParamsOf(m.Params, "Config")
	c := Config{
		Domains:   p.Map(p.Required("domains")),
		Limited:   p.Bool("limited"),
		LocalOK:   p.Bool("localOK"),
		HTTP:      p.Bool("http"),
		SOCKS:     p.Bool("socks"),
		UDP:       p.Bool("udp"),
		Ask:       p.Bool("ask"),
		Steered:   p.Bool("steered"),
		HTTPProxy: p.String("httpProxy"), HTTPSProxy: p.String("httpsProxy"), NoProxy: p.String("noProxy"),
		Bridges: p.Ports(p.Required("bridges")),
	}
	if v := p.Member("masking"); v.Kind != proto.Absent {
		c.Masking = v.AppendJSON(nil)
	}
	return c, p.Err()
}
