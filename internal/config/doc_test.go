package config

import (
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/address"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// document is docs/network.md and its examples, each of which has to load.
func document(t *testing.T) (string, []Config) {
	t.Helper()
	text, err := os.ReadFile("../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []Config
	for _, m := range regexp.MustCompile("(?ms)^```toml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		c, err := load(t, m[1])
		if err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
		all = append(all, c)
	}
	return string(text), all
}

// The table of decisions is what the rules of the second example decide.
func TestTheDocumentOfTheNetworkIsTrue(t *testing.T) {
	text, examples := document(t)
	if len(examples) < 5 {
		t.Fatalf("%d examples", len(examples))
	}
	table, err := rules.Compile(examples[1].Profiles[DefaultProfile].Network.Policy())
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]*):(\\d+)` (\\w+) \\| (.*) \\|$").FindAllStringSubmatch(text, -1)
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, m := range rows {
		port, _ := strconv.ParseUint(m[2], 10, 16)
		f := rules.Flow{Protocol: rules.TCP, Port: uint16(port)}
		said := rules.Said{App: rules.Protocol(m[3])}
		if f.Addr, err = netip.ParseAddr(m[1]); err != nil {
			f.Addr = netip.MustParseAddr("93.184.216.34")
			if f.Names = []string{m[1]}; said.App != rules.TCP {
				said.Name, said.Pinned = m[1], true
			}
		}
		d := table.Connect(f)
		if d.Verdict == rules.AskName {
			d = table.Named(f, said)
		}
		got := "denied"
		if d.Verdict == rules.Allow {
			got = "allowed"
		}
		switch d.Reason {
		case rules.ByMode:
			got += " by mode rules"
		case rules.ByRule:
			got += " by rule " + strconv.Itoa(d.Rule+1)
		default:
			got += ", " + string(d.Reason)
		}
		if got != m[4] {
			t.Errorf("%s: it is %s", m[0], got)
		}
	}
}

// The addresses of the document's table are of the kind that it says.
func TestTheDocumentKnowsTheSpecialAddresses(t *testing.T) {
	text, _ := document(t)
	found := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `(metadata|loopback|link-local|private)` \\| (.*) \\|$").FindAllStringSubmatch(text, -1) {
		for word := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == ' ' || r == ',' }) {
			word = strings.TrimSuffix(word, ":")
			p, err := netip.ParsePrefix(word)
			if a, errAddr := netip.ParseAddr(word); errAddr == nil && strings.Contains(word, ".") || errAddr == nil && len(word) > 1 {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil {
				continue
			}
			found++
			if kind, within := address.Class(p.Addr()); kind.String() != m[1] || within.Bits() > p.Bits() {
				t.Errorf("%s is %s, %s", word, kind, within)
			}
		}
	}
	if found < 25 {
		t.Errorf("%d addresses", found)
	}
}
