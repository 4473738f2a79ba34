package network

import (
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// routed is a namespace whose packets go through a pair of interfaces, and are
// routed by the host: without any rules, or with the least that a container has whose
// address nobody else knows.
func routed(t testing.TB, n *testnet.Internet, masquerade bool) sandbox {
	t.Helper()
	s := newSandbox(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	network := netip.MustParsePrefix("10.98.0.0/24")
	outer, inner := network.Addr().Next(), network.Addr().Next().Next()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "bench"
	must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(s.ns.Fd()))}))
	t.Cleanup(func() { _ = netlink.LinkDel(&netlink.Veth{LinkAttrs: attrs}) })
	up := func(name string, a netip.Addr) error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(24, 32)}}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	}
	must(up("bench", outer))
	must(s.do(func() error {
		if err := up("eth0", inner); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Gw: outer.AsSlice()})
	}))
	must(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	if masquerade {
		must(addMasquerade())
		t.Cleanup(func() { must(removeMasquerade()) })
		return s
	}
	must(n.World.Do(func() error {
		return netlink.RouteAdd(&netlink.Route{
			Dst: &net.IPNet{IP: network.Addr().AsSlice(), Mask: net.CIDRMask(24, 32)}, Gw: testnet.Host.AsSlice(),
		})
	}))
	return s
}

var masquerading = &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "bench"}

// addMasquerade has what is forwarded leave with the host's address, and drops
// what belongs to no connection from the inside.
func addMasquerade() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.AddTable(masquerading)
	post := c.AddChain(&nftables.Chain{
		Name: "post", Table: masquerading, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	c.AddRule(&nftables.Rule{Table: masquerading, Chain: post, Exprs: []expr.Any{&expr.Masq{}}})
	forward := c.AddChain(&nftables.Chain{
		Name: "forward", Table: masquerading, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	c.AddRule(&nftables.Rule{Table: masquerading, Chain: forward, Exprs: []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: []byte{6, 0, 0, 0}, Xor: make([]byte, 4)}, // established, related
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}})
	c.AddRule(&nftables.Rule{Table: masquerading, Chain: forward, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: append([]byte("bench"), make([]byte, 11)...)},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	return c.Flush()
}

func removeMasquerade() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.DelTable(masquerading)
	return c.Flush()
}

// besides runs a benchmark beside the pair of interfaces without rules and with them.
func besides(b *testing.B, f func(b *testing.B, masquerade bool)) {
	b.Run("veth", func(b *testing.B) { f(b, false) })
	b.Run("veth-nft", func(b *testing.B) { f(b, true) })
}

// median of what was measured.
func median[T float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkWayStream has one stream from the world to a program, by the way out and by
// a routed pair of interfaces, by turns.
func BenchmarkWayStream(b *testing.B) { besides(b, benchmarkStream) }

func benchmarkStream(b *testing.B, masquerade bool) {
	const size = 256 << 20
	n := testnet.Here(b)
	if err := n.ServeTCP(7000, func(c net.Conn) { _, _ = io.CopyN(c, zeros{}, size) }); err != nil {
		b.Fatal(err)
	}
	by := [2]sandbox{newSandbox(b), routed(b, n, masquerade)}
	openAt(b, by[0], allowing(testnet.Other.String()))
	var rates [2][]float64
	buffer := make([]byte, 1<<20)
	b.SetBytes(2 * size)
	for b.Loop() {
		for i, s := range by {
			start := time.Now()
			c, err := s.dial(b.Context(), "tcp4", testnet.Other.String()+":7000")
			if err != nil {
				b.Fatal(err)
			}
			got := 0
			for err == nil {
				var k int
				k, err = c.Read(buffer)
				got += k
			}
			if got != size {
				b.Fatal(got, err)
			}
			rates[i] = append(rates[i], size/1e6/time.Since(start).Seconds())
			_ = c.Close()
		}
	}
	way, veth := median(rates[0]), median(rates[1])
	b.ReportMetric(way, "way-MB/s")
	b.ReportMetric(veth, "veth-MB/s")
	b.ReportMetric(way/veth, "ratio")
}

// BenchmarkWayConnect makes a connection and closes it, by the way out and by a routed
// pair of interfaces, by turns.
func BenchmarkWayConnect(b *testing.B) { besides(b, benchmarkConnect) }

func benchmarkConnect(b *testing.B, masquerade bool) {
	n := testnet.Here(b)
	if err := n.ServeTCP(7000, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }); err != nil {
		b.Fatal(err)
	}
	by := [2]sandbox{newSandbox(b), routed(b, n, masquerade)}
	openAt(b, by[0], allowing(testnet.Other.String()))
	to := &unix.SockaddrInet4{Addr: testnet.Other.As4(), Port: 7000}
	connect := func(s sandbox, rounds int) (took []time.Duration) {
		err := s.do(func() error {
			for range rounds {
				start := time.Now()
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				if err := unix.Connect(fd, to); err != nil {
					return err
				}
				_ = unix.Close(fd)
				took = append(took, time.Since(start))
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return took
	}
	var took [2][]time.Duration
	for b.Loop() {
		for i, s := range by {
			took[i] = append(took[i], connect(s, 10)...)
		}
	}
	way, veth := median(took[0]), median(took[1])
	b.ReportMetric(float64(way.Microseconds()), "way-µs")
	b.ReportMetric(float64(veth.Microseconds()), "veth-µs")
	b.ReportMetric(float64((way - veth).Microseconds()), "over-µs")
}

// BenchmarkIdle opens the ways of environments in which nothing goes on.
func BenchmarkIdle(b *testing.B) {
	testnet.Here(b)
	const environments = 20
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	for b.Loop() {
		var all []sandbox
		for range environments + 1 {
			all = append(all, newSandbox(b))
		}
		openAt(b, all[0], allowing(testnet.Other.String())) // what is made once
		before, goroutines := memory(), runtime.NumGoroutine()
		var ways []*Way
		for _, s := range all[1:] {
			ways = append(ways, openAt(b, s, allowing(testnet.Other.String())))
		}
		b.ReportMetric(float64(memory()-before)/1e3/environments, "KB/environment")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/environments, "goroutines/environment")
		for _, w := range ways {
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
