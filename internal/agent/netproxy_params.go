package agent

import (
	"slices"
	"strings"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// network is what process/start asks for about the command's way out.
type network struct {
	// enforce: inside a sandbox the proxy, and nothing else, is reached.
	enforce bool
	// managed is a proxy that the client runs itself; nil if it runs none.
	managed *managedNetwork
	// proxy is the one to run for the command; nil if it wants none.
	proxy *proxyParams
}

type managedNetwork struct {
	// ports are those that proxy variables may name; any if there are none.
	ports       []uint16
	transparent bool
	allUnix     bool // see proxyPlan
}

type proxyParams struct {
	enabled, transparent, masking bool
	upstream, allUnix             bool
	config                        policy.Config
	unixSockets                   map[string]string
	// providers are kinds of credentials to mask beside the known ones, as JSON; nil
	// if there are none.
	providers []byte
	// asks has the client decide about hosts that no rule covers, in timeoutMs.
	asks      bool
	timeoutMs uint64
}

// decodeNetwork reads the members of process/start that are about the network.
func decodeNetwork(p *proto.Params) (n network) {
	n.enforce = p.BoolOr("enforceManagedNetwork", false)
	if m := p.Sub(p.Nullable("managedNetwork"), "ManagedNetworkSandboxContext"); m != nil {
		n.managed = &managedNetwork{ports: m.Ports(m.Member("loopbackPorts"))}
		m.BoolOr("allowLocalBinding", false)
		m.Strings(m.Member("allowUnixSockets"))
		n.managed.allUnix = m.BoolOr("dangerouslyAllowAllUnixSockets", false)
		n.managed.transparent = m.BoolOr("transparentTcp", false)
		p.Join(m)
	}
	if launch := p.Sub(p.Nullable("networkProxy"), "RemoteNetworkProxyLaunchConfig"); launch != nil {
		n.proxy = decodeProxy(launch)
		p.Join(launch)
	}
	return n
}

func decodeProxy(launch *proto.Params) *proxyParams {
	out := &proxyParams{}
	if c := launch.Sub(launch.Required("proxy"), "RemoteNetworkProxyConfig"); c != nil {
		out.enabled = c.Bool("enabled")
		out.config.HTTP = true
		out.config.SOCKS = c.Bool("enableSocks5")
		out.config.UDP = c.Bool("enableSocks5Udp") && out.config.SOCKS
		out.upstream = c.Bool("allowUpstreamProxy")
		out.allUnix = c.Bool("dangerouslyAllowAllUnixSockets")
		out.config.Limited = c.Variant(c.Required("mode"), "limited", "full") == "limited"
		out.config.LocalOK = c.Bool("allowLocalBinding")
		out.config.Domains = variants(c, "domains", "none", "allow", "deny")
		out.unixSockets = variants(c, "unixSockets", "allow", "deny")
		out.transparent = c.BoolOr("transparentTcp", false)
		out.masking = c.BoolOr("credentialMasking", false)
		out.providers = decodeProviders(c)
		launch.Join(c)
	}
	if v := launch.Member("auditMetadata"); v.Kind != proto.Absent {
		audit := launch.Sub(v, "NetworkProxyAuditMetadata")
		for _, name := range []string{"conversationId", "appVersion", "userAccountId", "authMode", "originator", "userEmail", "terminalType", "model", "slug"} {
			audit.OptString(name)
		}
		launch.Join(audit)
	}
	launch.OptString("environmentId")
	launch.OptString("executionId")
	out.timeoutMs, out.asks = launch.OptUint("policyDecisionTimeoutMs")
	out.config.Ask = out.asks
	return out
}

// providerFields are the members of a credential provider.
var providerFields = []string{"env", "patterns", "url_prefixes", "url_prefix_from_env", "auth", "header", "prefix"}

// decodeProviders checks the shape of credentialProviders; what they mean is the
// helper's to see.
func decodeProviders(c *proto.Params) []byte {
	all := c.Member("credentialProviders")
	if all.Kind != proto.Object {
		c.Map(all) // has the words
		return nil
	}
	for i := range all.Len() {
		p := c.Sub(all.At(i), "CredentialProviderConfig")
		for j := range all.At(i).Len() {
			if name := all.At(i).Key(j); !slices.Contains(providerFields, name) {
				p.Fail(proto.BadParams("unknown field `%s`, expected one of `%s`", name, strings.Join(providerFields, "`, `")))
			}
		}
		for _, name := range providerFields {
			switch v := p.Member(name); name {
			case "env", "patterns", "url_prefixes":
				p.Strings(v)
			case "auth":
				p.Strings(v)
				for k := range v.Len() {
					p.Variant(v.At(k), "bearer", "token", "basic", "header")
				}
			default:
				p.Text(v)
			}
		}
		c.Join(p)
	}
	return all.AppendJSON(nil)
}

// variants reads a member that is an object of the given words, or null, or
// missing.
func variants(p *proto.Params, name string, words ...string) map[string]string {
	v := p.Nullable(name)
	if v.Kind == proto.Absent {
		return nil
	}
	m := p.Map(v)
	for i := range v.Len() {
		p.Variant(v.At(i), words...)
	}
	return m
}
