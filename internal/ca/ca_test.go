package ca

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCertificates(t *testing.T) {
	now := time.Now()
	text, err := New(strings.Repeat("long", 40), now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.PEM())
	c, err := a.Leaf("a.test", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "a.test", Roots: roots}); err != nil {
		t.Error(err)
	}
	if err := c.Leaf.VerifyHostname("b.a.test"); err == nil || c.Leaf.IsCA || c.Leaf.NotAfter.Sub(now) > leafLife {
		t.Errorf("it is good for more: %v, %v", c.Leaf.NotAfter, err)
	}
	for after, same := range map[time.Duration]bool{leafLife/2 - time.Minute: true, leafLife/2 + time.Minute: false} {
		a.leafs["a.test"] = c
		if d, err := a.Leaf("a.test", now.Add(after)); err != nil || (c == d) != same {
			t.Errorf("after %v the same: %v, %v", after, c == d, err)
		}
	}
	for n := range maxLeafs {
		a.leafs[fmt.Sprintf("%d.test", n)] = c
	}
	if _, err := a.Leaf("last.test", now); err != nil || len(a.leafs) != maxLeafs || a.leafs["last.test"] == nil {
		t.Errorf("%d are kept, %v", len(a.leafs), err)
	}
	if c, err := a.Leaf("2606:4700::1111", now); err != nil || c.Leaf.VerifyHostname("2606:4700::1111") != nil {
		t.Errorf("for an address: %v", err)
	}
}
