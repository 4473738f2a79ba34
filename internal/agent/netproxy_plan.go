package agent

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// proxyPlan is what a command's network needs beside the command: a proxy of
// its own, or bridges to the proxies that its environment names.
//
// It is carried out in this order: open, by a thread in the network namespace
// that the command will be in; announce, before the environment is handed over;
// launch, which starts the process that serves the sockets. That process belongs
// outside of the command's namespace, since it has to reach what the command
// must not.
type proxyPlan struct {
	// isolated: the command gets a network namespace with nothing but a loopback,
	// and sockets of the internet's families in it only. This is whatever its
	// profile says about the network.
	isolated bool
	// allUnix: an isolated command may have unix sockets too, of any path.
	allUnix bool

	config  policy.Config
	asks    *proxyParams // how long the client may take to answer; nil if it is not asked
	bridges []proxyEndpoint

	// bundle is a file with the certificates that a command with masked credentials
	// trusts; "" if none is masked. It is removed by release.
	bundle string
}

// proxyEndpoint is a variable that names a proxy on this machine's loopback.
type proxyEndpoint struct {
	variable string
	before   string // what stands before its host and port,
	after    string // and behind
	port     uint16
}

// plan says what a command with this environment needs; nil if nothing. The
// error, if any, is for the command to end with and not for the answer to
// process/start: it can do nothing as the client wants it confined. inherited
// looks a variable of the executor itself up.
func (n *network) plan(env map[string]string, inherited func(string) string, sandboxed bool) (*proxyPlan, error) {
	p := &proxyPlan{isolated: n.enforce && sandboxed || n.proxy != nil && n.proxy.transparent}
	switch {
	case n.proxy != nil:
		p.config = n.proxy.config
		p.config.Steered = n.proxy.transparent
		p.allUnix = n.proxy.allUnix
		if n.proxy.asks {
			p.asks = n.proxy
		}
		if n.proxy.upstream {
			p.config.HTTPProxy = cmp.Or(inherited("HTTP_PROXY"), inherited("http_proxy"))
			p.config.HTTPSProxy = cmp.Or(inherited("HTTPS_PROXY"), inherited("https_proxy"))
			p.config.NoProxy = cmp.Or(inherited("NO_PROXY"), inherited("no_proxy"))
		}
		return p, nil
	case !p.isolated:
		return nil, nil
	}
	var ports []uint16
	if n.managed != nil {
		ports, p.allUnix = n.managed.ports, n.managed.allUnix
	}
	var err error
	if p.bridges, err = proxyEndpoints(env); err != nil {
		return nil, err
	}
	for _, e := range p.bridges {
		if len(ports) > 0 && !slices.Contains(ports, e.port) {
			return nil, errOutside
		}
		if !slices.Contains(p.config.Bridges, e.port) {
			p.config.Bridges = append(p.config.Bridges, e.port)
		}
	}
	return p, nil
}

// alone tells whether the command is to have nothing but the plan's way out.
func (p *proxyPlan) alone() bool { return p != nil && p.isolated }

// open opens what the plan's process serves, on the loopback of the calling
// thread's network namespace. Nothing accepts yet, but the kernel takes
// connections on.
func (p *proxyPlan) open() (s proxySockets, err error) {
	var kinds []int
	if p.config.HTTP {
		kinds = append(kinds, unix.SOCK_STREAM)
	}
	if p.config.SOCKS {
		kinds = append(kinds, unix.SOCK_STREAM)
	}
	if p.config.UDP {
		kinds = append(kinds, unix.SOCK_DGRAM)
	}
	for range p.config.Bridges {
		kinds = append(kinds, unix.SOCK_STREAM)
	}
	for _, kind := range kinds {
		if err := s.open(kind); err != nil {
			s.close()
			return s, &proto.Error{Code: proto.CodeInternal, Kind: "spawnFailed", Message: fmt.Sprintf("open the network proxy's sockets: %s", err)}
		}
	}
	if p.config.Steered {
		if err := s.steer(); err != nil {
			s.close()
			return s, &proto.Error{Code: proto.CodeInternal, Kind: "spawnFailed", Message: fmt.Sprintf("lead the command's connections to its proxy: %s", err)}
		}
	}
	return s, nil
}

// announce leads the command's programs to the sockets.
func (p *proxyPlan) announce(env map[string]string, s *proxySockets) {
	if p.config.HTTP {
		socks := uint16(0)
		if p.config.SOCKS {
			socks = s.ports[1]
		}
		announce(env, s.ports[0], socks, p.config.LocalOK)
		if p.bundle != "" {
			announceBundle(env, p.bundle)
		}
	}
	for _, e := range p.bridges {
		to := s.ports[slices.Index(p.config.Bridges, e.port)]
		env[e.variable] = fmt.Sprintf("%s127.0.0.1:%d%s", e.before, to, e.after)
	}
}
