package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// Bounds of a configuration, which every connection of the command is checked
// against.
const (
	maxDomains     = 4096
	maxDomainBytes = 256 << 10
)

// maxCallbackID is how long the id of a process may be that asks, in bytes.
const maxCallbackID = 256

// check refuses what can not be had, in the reference's order and words.
func (n *network) check(id string, sandboxed bool) error {
	if n.managed != nil && n.managed.transparent {
		return proto.BadParams("transparent TCP requires an executor-local managed proxy")
	}
	p := n.proxy
	if p == nil {
		return nil
	}
	switch {
	case p.asks && p.timeoutMs == 0:
		return proto.BadParams("network policy decision callback timeout must be nonzero")
	case p.asks && (id == "" || len(id) > maxCallbackID):
		return proto.BadParams("callback-enabled process ID must be non-empty and at most %d bytes", maxCallbackID)
	case p.transparent && !sandboxed:
		return proto.BadParams("transparent TCP requires a managed Linux sandbox")
	case !p.enabled:
		return badProxy("executor-local network proxy launch requires an enabled proxy")
	case p.transparent && !p.config.SOCKS:
		return badProxy("transparent_tcp requires an enabled managed SOCKS5 proxy")
	case p.transparent && !steerable():
		return proto.BadParams("transparent TCP is not available on this executor")
	}
	size := 0
	for name := range p.config.Domains {
		size += len(name)
	}
	if len(p.config.Domains) > maxDomains || size > maxDomainBytes {
		return badProxy(fmt.Sprintf("more than %d domains, or more than %d bytes of them", maxDomains, maxDomainBytes))
	}
	if _, err := policy.New(p.config.Domains, p.config.LocalOK); err != nil {
		return badProxy(err.Error())
	}
	i := 0
	for _, path := range slices.Sorted(maps.Keys(p.unixSockets)) {
		if p.unixSockets[path] != "allow" {
			continue
		}
		if !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
			return badProxy(fmt.Sprintf("invalid network.allow_unix_sockets[%d]: expected a NUL-free absolute path for Linux, got %q", i, path))
		}
		i++
	}
	return nil
}

func badProxy(why string) error { return proto.BadParams("invalid network proxy config: %s", why) }

// questionGrace is how much longer than it was told a client may take to answer.
const questionGrace = 5 * time.Second

// patience is how long an answer to a question may take. It is bounded so that
// it can be told to a timer.
func (n *proxyParams) patience() time.Duration {
	return time.Duration(min(n.timeoutMs, 1<<40))*time.Millisecond + questionGrace
}
