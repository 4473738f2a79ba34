package broker

import (
	"bytes"
	"encoding/pem"
	"os"
	"strings"
	"testing"
)

func TestAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenAuthority(dir, "env")
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAuthority(dir, "env")
	if err != nil || !bytes.Equal(first.PEM(), again.PEM()) {
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
