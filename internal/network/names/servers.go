package names

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// parseServer reads "IP" or "IP:PORT".
func parseServer(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, 53), nil
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil || ap.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("name server %q is neither IP nor IP:PORT", s)
	}
	return ap, nil
}

// order returns the servers, those last that did not answer lately.
func (u *Upstream) order() ([]netip.AddrPort, error) {
	servers, err := u.servers()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	servers = slices.Clone(servers)
	slices.SortStableFunc(servers, func(a, b netip.AddrPort) int {
		return rank(now.Before(u.slow[a])) - rank(now.Before(u.slow[b]))
	})
	return servers, nil
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// setSlow has a server asked after the others until then. Those that are over are
// forgotten, so that a file that changes leaves nothing behind.
func (u *Upstream) setSlow(server netip.AddrPort, until time.Time) {
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.slow[server] = until
	for s, end := range u.slow {
		if !now.Before(end) {
			delete(u.slow, s)
		}
	}
}
