package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// database makes a root directory with passwd and group files; "" is none.
func database(t *testing.T, passwd, group string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"passwd": passwd, "group": group} {
		if text != "" {
			if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestLookupUser(t *testing.T) {
	root := database(t, `root:x:0:0:root:/root:/bin/bash
# a comment
broken:x:1
dev:x:1000:100:Dev,,,:/home/dev:/bin/zsh
nohome:x:1001:1001:::
1002:x:2002:2002::/home/digits:/bin/sh
bad:x:-1:0::/:/bin/sh
huge:x:4294967295:0::/:/bin/sh
crlf:x:1005:1005::/home/crlf:/bin/ash
`+"win:x:1006:1006::/home/win:/bin/sh\r\n"+`dev:x:7:7:a second entry:/other:/bin/sh`,
		"root:x:0:\nusers:x:100:other\nwheel:x:10:root,dev\nvideo:x:44:dev\nodd:x:y:dev\nfew:x\n55:x:66:dev\n")
	dev := User{Name: "dev", UID: 1000, GID: 100, Groups: []int{10, 44, 66}, Home: "/home/dev", Shell: "/bin/zsh"}
	for _, test := range []struct {
		spec string
		want User
	}{
		{"", User{Name: "root", Groups: []int{10}, Home: "/root", Shell: "/bin/bash"}},
		{"0", User{Name: "root", Groups: []int{10}, Home: "/root", Shell: "/bin/bash"}},
		{"dev", dev},
		{"1000", dev},
		{"nohome", User{Name: "nohome", UID: 1001, GID: 1001, Home: "/"}},
		{"1002", User{Name: "1002", UID: 2002, GID: 2002, Home: "/home/digits", Shell: "/bin/sh"}}, // a name
		{"2002", User{Name: "1002", UID: 2002, GID: 2002, Home: "/home/digits", Shell: "/bin/sh"}},
		{"win", User{Name: "win", UID: 1006, GID: 1006, Home: "/home/win", Shell: "/bin/sh"}},
		{"4242", User{UID: 4242, Home: "/"}},
		{"4242:4343", User{UID: 4242, GID: 4343, Home: "/"}},
		{"dev:wheel", User{Name: "dev", UID: 1000, GID: 10, Home: "/home/dev", Shell: "/bin/zsh"}},
		{"dev:999", User{Name: "dev", UID: 1000, GID: 999, Home: "/home/dev", Shell: "/bin/zsh"}},
		{"dev:55", User{Name: "dev", UID: 1000, GID: 66, Home: "/home/dev", Shell: "/bin/zsh"}}, // a name
		{"1000:0", User{Name: "dev", UID: 1000, Home: "/home/dev", Shell: "/bin/zsh"}},
		{":44", User{Name: "root", GID: 44, Home: "/root", Shell: "/bin/bash"}},
	} {
		if got, err := LookupUser(root, test.spec); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q is %+v, %v; want %+v", test.spec, got, err, test.want)
		}
	}
	for spec, want := range map[string]string{
		"nobody":    `user "nobody" is not in the image's /etc/passwd`,
		"bad":       `user "bad" is not in the image's /etc/passwd`,
		"huge":      `user "huge" is not in the image's /etc/passwd`,
		"broken":    `user "broken" is not in the image's /etc/passwd`,
		"-1":        `user "-1" is not in the image's /etc/passwd`,
		"dev:none":  `group "none" is not in the image's /etc/group`,
		"dev:odd":   `group "odd" is not in the image's /etc/group`,
		"dev:":      `group "" is not in the image's /etc/group`,
		"dev:10:10": `group "10:10" is not in the image's /etc/group`,
	} {
		if u, err := LookupUser(root, spec); err == nil || err.Error() != want {
			t.Errorf("%q is %+v, %v; want the error %q", spec, u, err, want)
		}
	}
}

func TestLookupUserInAnImageWithoutDatabase(t *testing.T) {
	root := database(t, "", "")
	for spec, want := range map[string]User{
		"":      {Name: "root", Home: "/root"},
		"0":     {Name: "root", Home: "/root"},
		"5":     {UID: 5, Home: "/"},
		"5:6":   {UID: 5, GID: 6, Home: "/"},
		"0:100": {Name: "root", GID: 100, Home: "/root"},
	} {
		if got, err := LookupUser(root, spec); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v; want %+v", spec, got, err, want)
		}
	}
	if _, err := LookupUser(root, "root"); err == nil {
		t.Error("a name is found")
	}
}

func TestSelf(t *testing.T) {
	t.Setenv("HOME", "/somewhere/else")
	if home, _ := Self(); home != "/somewhere/else" {
		t.Errorf("the home directory is %s", home)
	}
	t.Setenv("HOME", "")
	u, err := LookupUser("", "")
	if home, shell := Self(); os.Getuid() == 0 && err == nil && (home != u.Home || shell != u.Shell) {
		t.Errorf("home %s, shell %s; want %+v", home, shell, u)
	}
}
