package names

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"

	"github.com/miekg/dns"
)

// maxServers is how many of the host's servers are asked, as by its C library.
const maxServers = 3

// resolvConf reads the host's name servers, again whenever the file has changed.
type resolvConf struct {
	path string

	mu    sync.Mutex // guards what follows
	file  os.FileInfo
	addrs []netip.AddrPort
}

// servers returns the servers of the file as it is now.
func (c *resolvConf) servers() ([]netip.AddrPort, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.path)
	if err != nil {
		return nil, fmt.Errorf("find name servers: %w", err)
	}
	if c.file != nil && os.SameFile(c.file, info) && c.file.ModTime().Equal(info.ModTime()) && c.file.Size() == info.Size() {
		return c.addrs, nil
	}
	addrs, err := readResolvConf(c.path)
	if err != nil {
		return nil, fmt.Errorf("find name servers: %w", err)
	}
	c.file, c.addrs = info, addrs
	return addrs, nil
}

// readResolvConf reads the name servers of a file. Lines that name none are passed
// over, as the C library does.
func readResolvConf(path string) ([]netip.AddrPort, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	conf, err := dns.ClientConfigFromReader(io.LimitReader(f, 1<<16))
	if err != nil {
		return nil, err
	}
	var addrs []netip.AddrPort
	for _, s := range conf.Servers {
		if a, err := netip.ParseAddr(s); err == nil && len(addrs) < maxServers {
			addrs = append(addrs, netip.AddrPortFrom(a, 53))
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has none", path)
	}
	return addrs, nil
}
