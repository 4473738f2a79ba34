package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// allowing is a policy that allows addresses over TCP.
func allowing(prefixes ...string) rules.Policy {
	return rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: prefixes}}}
}

func TestAConnectionIsMadeIfItIsUpstream(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	r.serveAt("93.184.216.34:7", echo)
	got, err := say(t, r.must("93.184.216.34:7"), "hello")
	if err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.program("93.184.216.34:8"); err == nil || err.Error() != "refused" {
		t.Errorf("where nobody listens: %v", err)
	}
	if s := r.Stats(); s.Total.Denied != 0 || s.Names["93.184.216.34"] != (Count{Allowed: 1, In: 5, Out: 5}) {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsDeniedIsRefusedAndNotDialled(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	for _, to := range []string{"1.1.1.1:443", "127.0.0.1:22", "169.254.169.254:80", "[fd00:ec2::254]:80"} {
		if _, err := r.program(to); err == nil || err.Error() != "refused" {
			t.Errorf("%s: %v", to, err)
		}
	}
	if d := r.dials(); len(d) != 0 {
		t.Errorf("dialled %v", d)
	}
	s := r.Stats()
	if s.Total.Denied != 4 || s.Denied[rules.Metadata] != 2 || s.Denied[rules.LoopbackOf] != 1 || s.Denied[rules.ByMode] != 1 || s.Open != 0 {
		t.Errorf("%+v", s)
	}
	if d := s.Denials[0]; d.What != "tcp [fd00:ec2::254]:80" || d.Reason != rules.Metadata || d.Rule != -1 {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(r.log.String(), `{"level":"info","to":"tcp 127.0.0.1:22","reason":"loopback","message":"network: denied"}`) {
		t.Errorf("log: %s", r.log)
	}
}

// A first packet that is sent again waits for the same connection.
func TestRepeatedFirstPackets(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	r.serveAt("93.184.216.34:7", echo)
	r.pause = make(chan struct{})
	k := key{netip.MustParseAddrPort("192.0.0.2:4000"), netip.MustParseAddrPort("93.184.216.34:7")}
	first, second, third := make(packet, 1), make(packet, 1), make(packet, 1)
	r.first(k, first)
	r.first(k, second)
	if v := <-first; v != "dropped" {
		t.Errorf("the first is %s", v)
	}
	close(r.pause)
	if v := <-second; v != "accepted" {
		t.Errorf("the second is %s", v)
	}
	r.first(k, third)
	if v := <-third; v != "accepted" {
		t.Errorf("the third is %s", v)
	}
	if n := len(r.dials()); n != 1 {
		t.Errorf("dialled %d times", n)
	}
}

// What comes to the listener by another way is decided there.
func TestWithoutAReservation(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	r.serveAt("93.184.216.34:7", echo)
	if got, err := say(t, r.must("93.184.216.34:7", bypass), "hello"); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	gateway := netip.AddrPortFrom(netns.Gateway4, 63080).String()
	for _, to := range []string{"1.1.1.1:443", gateway, "127.0.0.1:22"} {
		c, err := r.program(to, bypass)
		if err != nil {
			continue // it was reset before connect had returned
		}
		if got, err := say(t, c, "hello"); err == nil || got != "" {
			t.Errorf("%s: %q, %v", to, got, err)
		}
	}
	if d := r.dials(); len(d) != 1 {
		t.Errorf("dialled %v", d)
	}
}

// A name's address may be used for longer than it is good for, if it is still the
// name's.
func TestARefreshedName(t *testing.T) {
	policy := rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{
		{Allow: []string{"one.test"}, Protocols: []rules.Protocol{rules.TCP}, Ports: []rules.Ports{{First: 7, Last: 7}}},
	}}
	r := newRig(t, policy)
	r.serveAt("93.184.216.34:7", echo)
	if _, err := r.program("93.184.216.34:7"); err == nil {
		t.Error("connected without a name")
	}
	r.mu.Lock()
	r.former["one.test"] = []netip.Addr{netip.MustParseAddr("93.184.216.34")}
	r.mu.Unlock()
	if got, err := say(t, r.must("93.184.216.34:7"), "x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhatIsNotTCP(t *testing.T) {
	r := newRig(t, allowing("93.184.216.34"))
	r.other(netns.Flow{Protocol: 17, Src: netip.MustParseAddrPort("192.0.0.2:5"), Dst: netip.MustParseAddrPort("1.1.1.1:443")})
	r.other(netns.Flow{Protocol: 1, Src: netip.MustParseAddrPort("192.0.0.2:0"), Dst: netip.MustParseAddrPort("1.1.1.1:0")})
	r.other(netns.Flow{Protocol: 132, Src: netip.MustParseAddrPort("192.0.0.2:0"), Dst: netip.MustParseAddrPort("1.1.1.1:0")})
	var what []string
	for _, d := range r.Stats().Denials {
		what = append(what, d.What+" "+string(d.Reason))
	}
	if got, want := strings.Join(what, ", "), "ip 1.1.1.1:0 protocol, icmp 1.1.1.1:0 protocol, udp 1.1.1.1:443 protocol"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
