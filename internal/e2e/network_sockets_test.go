package e2e

import (
	"net"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// What no program of the others says: a protocol whose server speaks first, datagrams
// and pings.
func TestRulesForBareSockets(t *testing.T) {
	const look = "name web.example 8.8.8.8:53"
	found := "ok NOERROR " + testnet.Web.String() + " NOERROR"
	web, web6, banner := testnet.Web.String(), "["+testnet.Web6.String()+"]", "ok "+strings.TrimSpace(testnet.Banner)
	b := withPolicy(t, rules.Policy{Mode: rules.None})
	for _, tt := range []struct {
		kind   string
		policy rules.Policy
		tries  [][2]string
	}{
		{"tcp for a name", rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{onPorts(over(allow("web.example"), rules.TCP), 22)}}, [][2]string{
			{"tcp " + web + ":22", "refused"}, // before it is looked up
			{look, found},
			{"banner " + web + ":22", banner},
			{"tcp " + web + ":7", "refused"},
			{"tcp " + web + ":443", "refused"},
		}},
		{"port of an address", rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{onPorts(allow("93.184.216.0/24", "2606:4700::/32"), 22)}}, [][2]string{
			{"banner " + web + ":22", banner},
			{"banner " + web6 + ":22", banner},
			{"tcp " + web + ":80", "refused"},
		}},
		{"closed there", rules.Policy{Mode: rules.Open}, [][2]string{
			{"banner " + web + ":22", banner},
			{"tcp " + web + ":81", "refused"},
			{"tcp " + web6 + ":81", "refused"},
		}},
		{"no datagrams", rules.Policy{Mode: rules.Open}, [][2]string{
			{"udp " + web + ":443", "refused"},
			{"udp " + web6 + ":443", "refused"},
			{"udp " + net.JoinHostPort(testnet.Host.String(), "5000"), "refused"},
			{"ping " + web, "not permitted"},
			{"ping " + testnet.Web6.String(), "not permitted"},
			{"ping 127.0.0.1", "ok"},
			{"ping ::1", "ok"},
		}},
	} {
		t.Run(strings.ReplaceAll(tt.kind, " ", "-"), func(t *testing.T) {
			b.root.enforce(tt.policy)
			for _, try := range tt.tries {
				b.tells(try[0], try[1])
			}
		})
	}
	for _, p := range b.seen.Packets() {
		if p.Protocol != "tcp" && p.To != testnet.Resolver {
			t.Errorf("there left %v", p)
		}
	}
}

// A SYN that nobody answers is not answered by the daemon either, and one that is
// refused is at once.
func TestServersThatDoNotAnswer(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Open})
	for _, to := range []string{testnet.Nowhere.String(), testnet.Nowhere6.String()} {
		if got := b.sh("PATIENCE=2s probe tcp " + net.JoinHostPort(to, "443")); got != "no answer" {
			t.Errorf("%s: %q", to, got)
		}
	}
	if len(b.seen.To(testnet.Nowhere)) == 0 || len(b.seen.To(testnet.Nowhere6)) == 0 {
		t.Error("no SYN was sent to where nobody answers")
	}
	b.tells("tcp "+testnet.Web.String()+":81", "refused")
}
