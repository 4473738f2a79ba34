package broker

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenAuthority(dir, "env")
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAuthority(dir, "env")
	if err != nil || !bytes.Equal(first.PEM(), again.PEM()) || !first.key.Equal(again.key) {
		t.Errorf("another CA, %v", err)
	}
	path := dir + "/" + authorityFile
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v are in the directory, %v", all, err)
	}
	if bytes.Contains(first.PEM(), []byte("KEY")) {
		t.Error("the key is shown")
	}
	other := authority(t)
	if bytes.Equal(other.PEM(), first.PEM()) {
		t.Error("two environments have one CA")
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, key := pem.Decode(good)
	for name, text := range map[string]string{
		"empty": "", "junk": "junk", "no key": string(first.PEM()), "key alone": string(key), "other key": string(other.PEM()) + string(key),
		"cut": string(good[:len(good)-40]), "huge": strings.Repeat("x", 1<<20),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAuthority(dir, "env"); err == nil || !strings.Contains(err.Error(), path) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := os.ReadFile(path); string(now) != text {
			t.Errorf("%s: the file was written", name)
		}
	}
	if _, err := OpenAuthority(dir+"/none", "env"); err == nil {
		t.Error("a CA without a directory")
	}
}

func TestCertificates(t *testing.T) {
	a, err := OpenAuthority(t.TempDir(), strings.Repeat("long", 40))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c, err := a.certificate("a.test", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "a.test", Roots: pool509(t, a)}); err != nil {
		t.Error(err)
	}
	if err := c.Leaf.VerifyHostname("b.a.test"); err == nil || c.Leaf.IsCA || c.Leaf.NotAfter.Sub(now) > leafLife {
		t.Errorf("it is good for more: %v, %v", c.Leaf.NotAfter, err)
	}
	for after, same := range map[time.Duration]bool{leafLife/2 - time.Minute: true, leafLife/2 + time.Minute: false} {
		a.leafs["a.test"] = c
		if d, err := a.certificate("a.test", now.Add(after)); err != nil || (c == d) != same {
			t.Errorf("after %v the same: %v, %v", after, c == d, err)
		}
	}
	for n := range maxLeafs {
		a.leafs[fmt.Sprintf("%d.test", n)] = c
	}
	if _, err := a.certificate("last.test", now); err != nil || len(a.leafs) != maxLeafs || a.leafs["last.test"] == nil {
		t.Errorf("%d are kept, %v", len(a.leafs), err)
	}
}
