package names

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// says has a server answer with a code.
func says(rcode int) func(dns.ResponseWriter, *dns.Msg) bool {
	return func(w dns.ResponseWriter, q *dns.Msg) bool {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(q, rcode))
		return true
	}
}

func TestServersAreAskedInTheirOrder(t *testing.T) {
	const record = "a.example.com. 60 A 151.101.1.1"
	// A socket that is connected elsewhere keeps its port, on which nobody listens.
	gone, err := net.Dial("udp", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gone.Close() })
	nobody := &zone{addr: netip.MustParseAddrPort(gone.LocalAddr().String())}
	fails, refuses, good, never := newZone(t), newZone(t), newZone(t, record), newZone(t)
	fails.answers(says(dns.RcodeServerFailure))
	refuses.answers(says(dns.RcodeRefused))
	e := newEnvironment(t, upstream(t, nobody, fails, refuses, good, never), allowing("*.example.com")).serve()
	if diff := texts(e.query("a.example.com", dns.TypeA)); len(diff) != 1 {
		t.Errorf("%v", diff)
	}
	for i, z := range []*zone{fails, refuses, good, never} {
		if want := []int64{1, 1, 1, 0}[i]; z.queries.Load() != want {
			t.Errorf("server %d was asked %d times", i, z.queries.Load())
		}
	}
}

func TestNoServerResolves(t *testing.T) {
	z := newZone(t)
	z.answers(says(dns.RcodeServerFailure))
	e := newEnvironment(t, upstream(t, z), allowing("*.example.com")).serve()
	for _, qtype := range []uint16{dns.TypeA, dns.TypeTXT} {
		if m := e.query("a.example.com", qtype); m.Rcode != dns.RcodeServerFailure {
			t.Errorf("%v", m)
		}
	}
	for _, ev := range e.took() {
		if ev.Kind != Failed || ev.Name != "a.example.com" || !strings.Contains(ev.Err.Error(), "SERVFAIL") || !strings.Contains(ev.Err.Error(), z.addr.String()) {
			t.Errorf("%+v", ev)
		}
	}
}

// A server that says nothing costs its time once, and then stands behind the others.
func TestSilentServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := NewUpstream([]string{"192.0.2.1", "[2001:db8::2]:5353"})
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		silent := map[string]bool{"192.0.2.1:53": true}
		u.exchange = func(ctx context.Context, server netip.AddrPort, q *dns.Msg, _ bool) (*dns.Msg, error) {
			asked = append(asked, server.String())
			if silent[server.String()] {
				ctx, cancel := context.WithTimeout(ctx, udpTimeout)
				defer cancel()
				<-ctx.Done()
				return nil, os.ErrDeadlineExceeded
			}
			return new(dns.Msg).SetReply(q), nil
		}
		check := func(want ...string) {
			t.Helper()
			if _, err := u.ask(t.Context(), "a.example.com", dns.TypeA); err != nil {
				t.Error(err)
			}
			if !slices.Equal(asked, want) {
				t.Errorf("asked %v", asked)
			}
			asked = nil
		}
		check("192.0.2.1:53", "[2001:db8::2]:5353")
		check("[2001:db8::2]:5353")
		time.Sleep(slowFor)
		check("192.0.2.1:53", "[2001:db8::2]:5353")
		silent["[2001:db8::2]:5353"], silent["192.0.2.1:53"] = true, false
		check("[2001:db8::2]:5353", "192.0.2.1:53")
		if len(u.slow) != 1 {
			t.Errorf("slow are %v", u.slow)
		}
		silent["192.0.2.1:53"] = true
		began := time.Now()
		if _, err := u.ask(t.Context(), "a.example.com", dns.TypeA); err == nil || time.Since(began) != askTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// forger answers with what is not the answer before, or in place of, what is.
func forger(z *zone, forge func(m *dns.Msg) []byte) {
	z.answers(func(w dns.ResponseWriter, q *dns.Msg) bool {
		if w.LocalAddr().Network() == "udp" {
			_, _ = w.Write(forge(new(dns.Msg).SetReply(q)))
		}
		return false
	})
}

func TestForgedAnswersArePassedOver(t *testing.T) {
	evil, err := dns.NewRR("a.example.com. 60 A 151.101.6.6")
	if err != nil {
		t.Fatal(err)
	}
	for what, forge := range map[string]func(m *dns.Msg){
		"id":       func(m *dns.Msg) { m.Id++ },
		"name":     func(m *dns.Msg) { m.Question[0].Name = "b.example.com." },
		"type":     func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA },
		"class":    func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
		"query":    func(m *dns.Msg) { m.Response = false },
		"opcode":   func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate },
		"none":     func(m *dns.Msg) { m.Question = nil },
		"two":      func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
		"letters":  func(m *dns.Msg) { m.Question[0].Name = swapCase(m.Question[0].Name) },
		"no bytes": nil,
	} {
		z := newZone(t, "a.example.com. 60 A 151.101.1.1")
		forger(z, func(m *dns.Msg) []byte {
			if forge == nil {
				return []byte{}
			}
			m.Answer = []dns.RR{evil}
			forge(m)
			b, err := m.Pack()
			if err != nil {
				t.Error(err)
			}
			return b
		})
		r, err := upstream(t, z).ask(t.Context(), "a.example.com", dns.TypeA)
		if err != nil || !slices.Equal(r.addrs, []netip.Addr{netip.MustParseAddr("151.101.1.1")}) {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

// Over TCP nobody can guess, and a server that writes names its own way is believed.
func TestServersThatDoNotKeepLetters(t *testing.T) {
	z := newZone(t, "a.example.com. 60 A 151.101.1.1")
	var tcp atomic.Int64
	z.answers(func(w dns.ResponseWriter, q *dns.Msg) bool {
		if w.LocalAddr().Network() == "tcp" {
			tcp.Add(1)
		}
		m := z.reply(q)
		m.Question[0].Name = swapCase(m.Question[0].Name)
		_ = w.WriteMsg(m)
		return true
	})
	if r, err := upstream(t, z).ask(t.Context(), "a.example.com", dns.TypeA); err != nil || len(r.addrs) != 1 || tcp.Load() != 1 {
		t.Errorf("%+v, %v, %d over TCP", r, err, tcp.Load())
	}
}

func TestServersWithoutEDNS(t *testing.T) {
	z := newZone(t, "a.example.com. 60 A 151.101.1.1")
	z.answers(func(w dns.ResponseWriter, q *dns.Msg) bool {
		if q.IsEdns0() == nil {
			return false
		}
		m := new(dns.Msg).SetRcode(q, dns.RcodeFormatError)
		m.Question = nil
		_ = w.WriteMsg(m)
		return true
	})
	if r, err := upstream(t, z).ask(t.Context(), "a.example.com", dns.TypeA); err != nil || len(r.addrs) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// However many ask at once, one question is sent, and it goes on without who began.
func TestEqualQuestionsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		u, asked := faked(func(name string, _ uint16) []string {
			<-answer
			return []string{name + " 60 A 151.101.1.1"}
		})
		one := newEnvironment(t, u, allowing("a.example.com"))
		other := newEnvironment(t, u, allowing("a.example.com"))
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := one.lookup(ctx, "a.example.com", false)
			first <- err
		}()
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				f, err := []*environment{one, other}[i%2].lookup(t.Context(), "a.example.com", false)
				if err != nil || len(f.addrs) != 1 {
					t.Errorf("%v, %v", f, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(answer)
		wg.Wait()
		if asked.Load() != 1 {
			t.Errorf("%d questions", asked.Load())
		}
	})
}

// An environment asks so much at once; the rest waits, and is given up in the end.
func TestQuestionsOfAnEnvironmentAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		u, asked := faked(func(string, uint16) []string { <-answer; return nil })
		busy := newEnvironment(t, u, allowing("*.example.com"))
		results := make(chan error, 1000)
		for i := range 3 * maxAsking {
			go func() {
				_, err := busy.lookup(t.Context(), "n"+strings.Repeat("x", i%60)+string(rune('a'+i/60))+".example.com", false)
				results <- err
			}()
		}
		synctest.Wait()
		if n := asked.Load(); n != maxAsking {
			t.Errorf("%d questions", n)
		}
		// Others are not kept waiting.
		go func() {
			_, err := newEnvironment(t, u, allowing("*.example.net")).lookup(t.Context(), "a.example.net", false)
			results <- err
		}()
		synctest.Wait()
		if n := asked.Load(); n != maxAsking+1 {
			t.Errorf("%d questions", n)
		}
		time.Sleep(queryTimeout)
		for range 3*maxAsking + 1 {
			if err := <-results; err == nil {
				t.Error("answered")
			}
		}
		close(answer)
		synctest.Wait()
		if len(busy.asking)+len(u.slots) > 0 {
			t.Error("a place is still taken")
		}
	})
}

func TestServersOfTheConfiguration(t *testing.T) {
	for s, want := range map[string]string{
		"192.0.2.1": "192.0.2.1:53", "192.0.2.1:5353": "192.0.2.1:5353", "2001:db8::1": "[2001:db8::1]:53", "[2001:db8::1]:5353": "[2001:db8::1]:5353",
		"fe80::1%eth0": "[fe80::1%eth0]:53", "dns.google": "", "192.0.2.1:": "", "192.0.2.1:0": "", "[2001:db8::1]": "", "": "",
	} {
		got, err := parseServer(s)
		if want == "" && err == nil || want != "" && got.String() != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	if _, err := NewUpstream([]string{"192.0.2.1", "x"}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("%v", err)
	}
}

func TestServersOfTheHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	c := &resolvConf{path: path}
	if _, err := c.servers(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for text, want := range map[string][]string{
		"nameserver 192.0.2.1\nsearch example.com\nnameserver fe80::1%eth0\noptions edns0\n":                     {"192.0.2.1:53", "[fe80::1%eth0]:53"},
		"nameserver x\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\nnameserver 192.0.2.5\n": {"192.0.2.2:53", "192.0.2.3:53", "192.0.2.4:53"},
		"# nothing\n": nil,
	} {
		// As those write it that keep it: a new file in the place of the old one.
		next := path + ".new"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := c.servers()
			var all []string
			for _, a := range got {
				all = append(all, a.String())
			}
			if !slices.Equal(all, want) || (err == nil) != (want != nil) {
				t.Errorf("%q: %v, %v", text, all, err)
			}
		}
	}
}
