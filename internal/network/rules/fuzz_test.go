package rules

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/address"
)

// FuzzCompile makes a policy from lines "allow WORD" and "deny WORD", and asks it
// about one connection of a client that says a name.
func FuzzCompile(f *testing.F) {
	f.Add("allow pypi.org\nallow *.a.example:443/tls\ndeny *", "pypi.org", []byte{1, 1, 1, 1}, uint16(443), byte(0))
	f.Add("allow 10.0.0.0/8:22/tcp\ndeny 10.1.0.0/16\nallow db.x:22/tcp", "db.x", []byte{10, 1, 1, 1}, uint16(22), byte(3))
	f.Add("deny evil.x\nallow *.x\nallow [fd00:ec2::254]:80", "evil.x", netip.MustParseAddr("fd00:ec2::254").AsSlice(), uint16(80), byte(255))
	f.Fuzz(func(t *testing.T, text, name string, addr []byte, port uint16, flags byte) {
		a, ok := netip.AddrFromSlice(addr)
		if !ok {
			return
		}
		p := Policy{Mode: Rules}
		if flags&1 != 0 {
			p.Mode = Open
		}
		for line := range strings.Lines(text) {
			verb, word, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			r, err := Parse(word, verb == "deny")
			if err != nil {
				continue
			}
			if again, err := Parse(r.Words()[0], verb == "deny"); err != nil || again.String() != r.String() {
				t.Errorf("%q becomes %q becomes %q, %v", word, r, again, err)
			}
			p.Rules = append(p.Rules, r)
		}
		table, err := Compile(p)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%T", err)
			}
			return
		}
		flow := Flow{Protocol: TCP, Addr: a, Port: port, Own: flags&2 != 0}
		pinned := flags&4 != 0
		if clean, ok := address.Name(name); ok && pinned {
			flow.Names = []string{clean}
		} else {
			pinned = false
		}
		said := Said{App: []Protocol{TLS, HTTP, TCP}[int(flags>>4)%3], Name: name, Pinned: pinned, Hidden: flags&8 != 0}
		connect, named := table.Connect(flow), table.Named(flow, said)
		if connect.Verdict == Deny && named.Verdict != Deny || connect.Verdict == Allow && (named.Verdict != Allow || named.Credential != nil) {
			t.Errorf("connect: %+v, named: %+v", connect, named)
		}
		if len(table.Explain(Question{Host: name, Port: port, Addrs: []netip.Addr{a}}).Lines) == 0 {
			t.Error("nothing is explained")
		}
		answer := table.Answer(name, a, flow.Own)
		if !address.IsPublic(a) || flow.Own {
			opened := hasPrefixOf(p, a)
			if !opened && (connect.Verdict != Deny || named.Verdict != Deny || answer.Verdict != Deny) {
				t.Errorf("%s is special and open: %+v, %+v, %+v", a, connect, named, answer)
			}
		} else if answer.Verdict != Allow {
			t.Errorf("%s is no answer: %+v", a, answer)
		}
		clean, isName := address.Name(name)
		if !isName || !deniesWhole(p, clean) {
			return
		}
		if table.Resolve(name).Verdict != Deny {
			t.Errorf("%s is denied and looked up", clean)
		}
		if said.App != TCP && named.Verdict != Deny {
			t.Errorf("%s is denied and allowed: %+v", clean, named)
		}
	})
}

// hasPrefixOf tells whether some rule allows a prefix, shorter than everything, that
// has the address.
func hasPrefixOf(p Policy, a netip.Addr) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return slices.ContainsFunc(r.Allow, func(s string) bool {
			prefix, err := netip.ParsePrefix(s)
			if one, errOne := netip.ParseAddr(s); errOne == nil {
				prefix, err = netip.PrefixFrom(one.Unmap(), one.Unmap().BitLen()), nil
			}
			if err == nil && prefix.Addr().Is4In6() {
				prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
			}
			return err == nil && prefix.Bits() > 1 && prefix.Contains(a.Unmap())
		})
	})
}

// deniesWhole tells whether a rule denies the very name, and none allows it.
func deniesWhole(p Policy, name string) bool {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { clean, ok := address.Name(s); return ok && clean == name })
	}
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return has(r.Deny) && r.Ports == nil && r.Protocols == nil }) &&
		!slices.ContainsFunc(p.Rules, func(r Rule) bool { return has(r.Allow) })
}

// FuzzPortsJSON reads ports of files, and what it writes of them.
func FuzzPortsJSON(f *testing.F) {
	for _, text := range []string{`443`, `"8000-8100"`, `{"first":1,"last":2}`, `"9-8"`, `null`, `[]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p, again Ports
		if json.Unmarshal([]byte(text), &p) != nil || p.First == 0 || p.Last < p.First {
			return // which Compile refuses
		}
		written, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(written, &again)
		}
		if err != nil || again != p {
			t.Errorf("%s is %v, which is written %s, which is %v, %v", text, p, written, again, err)
		}
	})
}

// FuzzAsk explains whatever is a question.
func FuzzAsk(f *testing.F) {
	for _, target := range []string{"a.example:443", "[::1]:80", "::1", "10.0.0.1", "a:0", "[fe80::1%x]:1"} {
		f.Add(target, "")
		f.Add(target, "icmp")
	}
	table := compile(f, policy(f, Rules, "+a.example", "+10.0.0.0/8:22", "-*:25"))
	f.Fuzz(func(t *testing.T, target, protocol string) {
		q, err := Ask(target, Protocol(protocol))
		if err != nil {
			return
		}
		if x := table.Explain(q); q.Host == "" || q.Port == 0 && q.Protocol != ICMP || len(x.All) == 0 || len(x.Lines) == 0 || x.Reason == "" {
			t.Errorf("%q is %+v, and explained %+v", target, q, x)
		}
	})
}
