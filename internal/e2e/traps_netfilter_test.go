package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// netfilter runs f with a connection to the netfilter of the environment "default".
func (b *sandbox) netfilter(f func(*nftables.Conn) error) {
	b.t.Helper()
	p := &place{server: b.server, root: b.root}
	ns, err := os.Open("/proc/" + strconv.Itoa(p.pid()) + "/ns/net")
	if err != nil {
		b.t.Fatal(err)
	}
	defer ns.Close()
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := f(c); err != nil {
		b.t.Fatal(err)
	}
}

// tables lists its tables and how much is in them.
func (b *sandbox) tables() (all []string) {
	b.t.Helper()
	b.netfilter(func(c *nftables.Conn) error {
		tables, err := c.ListTables()
		if err != nil {
			return err
		}
		for _, table := range tables {
			family := map[nftables.TableFamily]string{nftables.TableFamilyINet: "inet", nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6"}[table.Family]
			sets, err := c.GetSets(table)
			if err != nil {
				return err
			}
			chains, err := c.ListChainsOfTableFamily(table.Family)
			if err != nil {
				return err
			}
			n := 0
			for _, chain := range chains {
				found, err := c.GetRules(table, chain)
				if err != nil {
					return err
				}
				n += len(found)
			}
			all = append(all, fmt.Sprintf("%s %s: %d sets, %d rules", family, table.Name, len(sets), n))
		}
		return nil
	})
	return all
}

// memory is what the daemon has of it, in MiB.
func (b *sandbox) memory() int {
	b.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.server.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return kib / 1024
}

func TestTrap99RulesDoNotPileUp(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("*.many.example", "web.example")}})
	b.n.DNS.Set("*.many.example", time.Second, testnet.Other.String(), testnet.Other6.String())
	before, had := strings.Join(b.tables(), "\n"), b.memory()
	count := scale(t, 2000, 10000)
	b.tells(fmt.Sprintf("names %d many.example 8.8.8.8:53", count), fmt.Sprint("ok ", count))
	if after := strings.Join(b.tables(), "\n"); after != before {
		t.Errorf("after %d lookups netfilter has %s, before %s", count, after, before)
	}
	if has := b.memory(); has > had+64 {
		t.Errorf("%d lookups took %d MiB", count, has-had)
	}
	// What was learned for one port opens no other.
	b.tells("name web.example 8.8.8.8:53", "ok NOERROR "+testnet.Web.String()+" NOERROR")
	b.tells("tls "+testnet.Web.String()+":443 web.example", "ok 200")
	for _, port := range []uint16{22, 25, 8443} {
		b.tells("tcp "+netip.AddrPortFrom(testnet.Web, port).String(), "refused")
	}
}

// A table that somebody has taken away stops everything, and the next environment
// has its own.
func TestTrap101BrokenNetlink(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Open})
	b.tells("tcp "+testnet.Web.String()+":80", "ok")
	b.netfilter(func(c *nftables.Conn) error {
		c.FlushRuleset()
		return c.Flush()
	})
	b.seen.Forget()
	for _, to := range []string{"tcp " + testnet.Web.String() + ":80", "udp " + testnet.Web.String() + ":443", "tcp [" + testnet.Web6.String() + "]:80"} {
		if got := b.sh("PATIENCE=2s probe " + to); strings.HasPrefix(got, "ok") {
			t.Errorf("without a table %s: %s", to, got)
		}
	}
	b.silent()
	other := &sandbox{harness: b.server.connect("/environments/other", ""), n: b.n, root: b.root, server: b.server}
	if out, errs, code := cli(t, "", "--config", b.root.config, "env", "policy", "other", "set", "--mode", "open"); code != 0 {
		t.Fatalf("env policy other: %s%s", out, errs)
	}
	other.tells("tcp "+testnet.Web.String()+":80", "ok")
}

// What the daemon does for itself is not in the namespace of a sandbox, and no policy
// or limit of a sandbox has a say in it.
func TestTrap103TheDaemonsOwnTraffic(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{deny("*"), deny("0.0.0.0/0"), deny("::/0")}, Limits: rules.Limits{Connections: 1, Bytes: 1}})
	b.tells("tcp "+testnet.Web.String()+":80", "refused")
	if got := b.sh("echo alive"); got != "alive" {
		t.Errorf("the harness is told %q", got)
	}
	expect(t, "the control socket", b.root.policy(0), "mode         rules")
	for _, family := range []string{"tcp", "tcp6"} {
		for line := range strings.Lines(b.sh("cat /proc/net/" + family)) {
			// State 0A is a listener, of which there are the daemon's for the sandbox.
			if fields := strings.Fields(line); len(fields) > 3 && fields[0] != "sl" && fields[3] != "0A" {
				t.Errorf("in the sandbox's namespace there is a connection: %s", line)
			}
		}
	}
}
