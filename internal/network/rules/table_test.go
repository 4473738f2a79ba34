package rules

import (
	"net/netip"
	"testing"
)

func compile(t *testing.T, p Policy) *Table {
	t.Helper()
	table, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func tcp(addr string, port uint16, names ...string) Flow {
	return Flow{Protocol: TCP, Addr: netip.MustParseAddr(addr), Port: port, Names: names}
}

func TestANameIsAskedForAndHasToBeTheAddressesOwn(t *testing.T) {
	table := compile(t, Policy{Mode: Rules, Rules: []Rule{{Allow: []string{"pypi.org"}}}})
	if d := table.Connect(tcp("1.1.1.1", 443, "pypi.org")); d.Verdict != AskName || d.Rule != 0 {
		t.Errorf("%+v", d)
	}
	for _, f := range []Flow{tcp("1.1.1.1", 443), tcp("1.1.1.1", 22, "pypi.org"), tcp("1.1.1.1", 443, "other.org")} {
		if d := table.Connect(f); d.Verdict != Deny || d.Reason != ByMode || d.Rule != -1 {
			t.Errorf("%+v: %+v", f, d)
		}
	}
	f := tcp("1.1.1.1", 443, "pypi.org")
	for _, c := range []struct {
		said Said
		want Verdict
		why  Reason
	}{
		{Said{TLS, "PyPI.org", true, false}, Allow, ByRule},
		{Said{TLS, "pypi.org", false, false}, Deny, WrongName},
		{Said{TLS, "pypi.org", true, true}, Deny, HiddenName},
		{Said{TLS, "other.org", true, false}, Deny, ByMode},
		{Said{TLS, "", false, false}, Deny, NoName},
		{Said{TCP, "", false, false}, Deny, NoName},
		{Said{HTTP, "pypi.org", true, false}, Allow, ByRule},
		{Said{HTTP, "1.1.1.1", false, false}, Deny, NoName},
	} {
		if d := table.Named(f, c.said); d.Verdict != c.want || d.Reason != c.why {
			t.Errorf("%+v: %+v", c.said, d)
		}
	}
}
