package proto

import "testing"

func TestURIsAreEchoedAsTheyWereGiven(t *testing.T) {
	for _, test := range []struct{ uri, given, below string }{ // below: of "x y" in it
		{"file:///a/b", "file:///a/b", "file:///a/b/x%20y"},
		{"file:///a/b/", "file:///a/b/", "file:///a/b/x%20y"},
		{"file:///a/b//", "file:///a/b//", "file:///a/b//x%20y"},
		{"file:///a//b", "file:///a//b", "file:///a//b/x%20y"},
		{"file:////a", "file:////a", "file:////a/x%20y"},
		{"file:///a/%62", "file:///a/%62", "file:///a/%62/x%20y"},
		{"file:///a%2Fb", "file:///a%2Fb", "file:///a%2Fb/x%20y"},
		{"file:///%c3%a9", "file:///%c3%a9", "file:///%c3%a9/x%20y"},
		{"file:///é", "file:///%C3%A9", "file:///%C3%A9/x%20y"},
		{"file:///a b", "file:///a%20b", "file:///a%20b/x%20y"},
		{"file:///%ff", "file:///%ff", "file:///%ff/x%20y"},
		{"file:///%", "file:///%", "file:///%/x%20y"},
		{"file:///./a/./b", "file:///a/b", "file:///a/b/x%20y"},
		{"file:///a/x/..", "file:///a/", "file:///a/x%20y"},
		{"file:///a/.", "file:///a/", "file:///a/x%20y"},
		{"file:///a/c/%2E%2e/b", "file:///a/b", "file:///a/b/x%20y"},
		{"file:///../a", "file:///a", "file:///a/x%20y"},
		{"file:///", "file:///", "file:///x%20y"},
		{"file:", "file:///", "file:///x%20y"},
		{"file:///..", "file:///", "file:///x%20y"},
		{`file:\a\b`, "file:///a/b", "file:///a/b/x%20y"},
		{"FILE://LocalHost/a", "file:///a", "file:///a/x%20y"},
		{" file:/a\t\n", "file:///a", "file:///a/x%20y"},
		{"file:///a|^[];~'b", "file:///a|^[];~'b", "file:///a|^[];~'b/x%20y"},
		{"file:///C:/x", "file:///C:/x", ""},
	} {
		u, err := ParseURI(test.uri)
		if err != nil {
			t.Errorf("%q: %v", test.uri, err)
			continue
		}
		if got := u.Given(); got != test.given {
			t.Errorf("%q is echoed as %s, want %s", test.uri, got, test.given)
		}
		path, err := u.Native()
		if err != nil {
			continue
		}
		if got := u.Below(path); got != test.given {
			t.Errorf("%q itself is %s", test.uri, got)
		}
		if path == "/" {
			path = ""
		}
		if got := u.Below(path + "/x y"); got != test.below {
			t.Errorf("below %q is %s, want %s", test.uri, got, test.below)
		}
	}
}

func FuzzGiven(f *testing.F) {
	for _, seed := range []string{"file:///a/b", "file:///%2e%2E/x//", "file:a/..", "file:///%41\xff", "file:////"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURI(text)
		if err != nil || u.path == "" {
			return
		}
		again, err := ParseURI(u.Given())
		if err != nil || again.path != u.path || again.Given() != u.Given() {
			t.Errorf("%q is given as %q, which is %q given as %q, %v", text, u.Given(), again.path, again.Given(), err)
		}
	})
}
