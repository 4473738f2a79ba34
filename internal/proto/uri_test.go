package proto

import (
	"strings"
	"testing"
)

func TestURIsAreReadAsBrowsersDo(t *testing.T) {
	for _, test := range []struct{ uri, path string }{
		{"file:///tmp/x", "/tmp/x"},
		{"file:/tmp/x", "/tmp/x"},
		{"file:tmp/x", "/tmp/x"},
		{"FILE:///tmp/x", "/tmp/x"},
		{"file://localhost/tmp/x", "/tmp/x"},
		{"file://LOCALHOST/tmp/x", "/tmp/x"},
		{"  file:///tmp/x \n", "/tmp/x"},
		{"fi\tle:///t\nmp/x", "/tmp/x"},
		{`file:\\\tmp\x`, "/tmp/x"},
		{`file:///a\b`, "/a/b"},
		{"file:///tmp//x///y", "/tmp/x/y"},
		{"file:////tmp/x", "/tmp/x"},
		{"file:///tmp/./x/../y", "/tmp/y"},
		{"file:///../../etc", "/etc"},
		{"file:///a/..", "/"},
		{"file:///tmp/x/", "/tmp/x"},
		{"file:///", "/"},
		{"file:", "/"},
		{"file://", "/"},
		{"file:///a b/é", "/a b/é"},
		{"file:///a%20b/%C3%A9", "/a b/é"},
		{"file:///a%2Fb%2f%2e%2E/c", "/a/c"},
		{"file:///%FF%fe", "/\xff\xfe"},
		{"file:///%", "/%"},
		{"file:///%4", "/%4"},
		{"file:///%zz%41", "/%zzA"},
		{"file:///a%5Cb", `/a\b`},
		{"file:///a%3Fb%23c", "/a?b#c"},
		{"file:///|^[];~", "/|^[];~"},
		{"file:///tmp/C:/x", "/tmp/C:/x"},
		{"file:///CC:/x", "/CC:/x"},
		{"file:///1:/x", "/1:/x"},
		// Only a literal letter and a colon make a drive, and a whole segment.
		{"file:///c|/x", "/c|/x"},
		{"file:///C%7C/x", "/C|/x"},
		{"file:///%43:/x", "/C:/x"},
		{"file:///C:%2Fx", "/C:/x"},
		{"file:///%2FC:/x", "/C:/x"},
		{"file:///.C:", "/.C:"},
		// Dots are resolved before slashes are decoded, and once more after.
		{"file:///a%2Fb/../c", "/c"},
		{"file:///etc/x%2F../passwd", "/etc/passwd"},
		{"file:///%2e%2E/a/%2e/b/%2E.", "/a"},
	} {
		u, err := ParseURI(test.uri)
		if err != nil {
			t.Errorf("%q: %v", test.uri, err)
			continue
		}
		if path, err := u.Native(); err != nil || path != test.path {
			t.Errorf("%q is %q, %v; want %q", test.uri, path, err, test.path)
		}
	}
}

func TestURIsThatAreNoPathsAreRefused(t *testing.T) {
	const relative = "invalid URI: relative URL without a base"
	const query, fragment = "query parameters are not allowed in path URIs", "fragments are not allowed in path URIs"
	for _, test := range []struct{ uri, want string }{
		{"/tmp/x", relative}, {"x", relative}, {"~", relative}, {"", relative}, {" ", relative},
		{"://x", relative}, {"1file:///x", relative}, {"-:x", relative}, {"fi le:///x", relative},
		{"https://x/y", "unsupported path URI scheme `https`"},
		{"HTTP:x", "unsupported path URI scheme `http`"},
		{"file2:///x", "unsupported path URI scheme `file2`"},
		{"C:/x", "unsupported path URI scheme `c`"},
		{"a+b-c.d:x", "unsupported path URI scheme `a+b-c.d`"},
		{"file:///x?", query}, {"file:///x?a=b", query}, {"file:///x?a#b", query},
		{"file:///x#", fragment}, {"file:///x#a?b", fragment},
		{"file://localhost:80/x", "invalid URI: invalid international domain name"},
		{"file:///C:/%00", "'file:///C:/%00' is invalid on 'linux'"},
		{"file:///a%00b", "'file:///a%00b' is invalid on 'linux'"},
	} {
		if u, err := ParseURI(test.uri); err == nil || err.Error() != test.want {
			t.Errorf("%q is %q, %v; want the error %q", test.uri, u, err, test.want)
		}
	}
}

// Paths of another system are read, and refused where they are used. They are
// echoed as a browser would write them.
func TestForeignURIsHaveNoNativePath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///C:/x": "", "file:///C:": "", "file:///C:/": "", "file:///C%3A/x": "", "file:///C%3a": "",
		"file://server/share": "", "file://127.0.0.1/x": "", "file://[::1]/x": "",
		"FILE:///C:":               "file:///C:",
		"file:C:/x":                "file:///C:/x",
		"file:C:":                  "file:///C:",
		"file://C:/x":              "file:///C:/x",
		"file:c|/x":                "file:///c:/x",
		"file://C|/x":              "file:///C:/x",
		"file:////C:/x":            "file:///C:/x",
		`file:///C:\x`:             "file:///C:/x",
		"file:///a/../C:/x":        "file:///C:/x",
		"file:///../C:/x":          "file:///C:/x",
		"file:///%2e/C:/x":         "file:///C:/x",
		"file:///C:/..":            "file:///C:/",
		"file:///C:/../etc":        "file:///C:/etc",
		"file:///C:/x/../y/.":      "file:///C:/y/",
		"file:///C:/a//b/":         "file:///C:/a//b/",
		"file:///C:/a b/%20\u00e9": "file:///C:/a%20b/%20%C3%A9",
		"file://SERVER/x/../y":     "file://server/y",
	} {
		if want == "" {
			want = uri
		}
		u, err := ParseURI(uri)
		if err != nil {
			t.Errorf("%q: %v", uri, err)
			continue
		}
		_, err = u.Native()
		e := WireError(err)
		if err == nil || e.Code != CodeInvalidRequest || e.Message != "'"+want+"' is invalid on 'linux'" {
			t.Errorf("%q: %v", uri, err)
		}
		if u.String() != want {
			t.Errorf("%q is echoed as %q", uri, u)
		}
	}
}

func TestURIsAreWrittenWithUpperCaseEscapes(t *testing.T) {
	for path, want := range map[string]string{
		"/":               "file:///",
		"/a/b":            "file:///a/b",
		"/a//b/./c/..":    "file:///a/b",
		" /":              "file:///%20",
		"/a b\t\x00\x7f":  "file:///a%20b%09%00%7F",
		"/\"#%<>?`{}\\":   "file:///%22%23%25%3C%3E%3F%60%7B%7D%5C",
		"/é\xff":          "file:///%C3%A9%FF",
		"/|^[];~!$&'()*+": "file:///|^[];~!$&'()*+",
		"/,-.:=@_":        "file:///,-.:=@_",
	} {
		if got := FileURI(path).String(); got != want {
			t.Errorf("%q is written %q, want %q", path, got, want)
		}
		if strings.HasPrefix(path, "/") && !strings.Contains(path, "//") {
			if got := string(AppendURI(nil, path)); got != `"`+want+`"` {
				t.Errorf("%q is appended as %s", path, got)
			}
		}
	}
}

// Every name that a file can have goes over the wire and back.
func TestURIsOfAllBytesComeBack(t *testing.T) {
	for c := 1; c < 256; c++ {
		path := "/x/a" + string([]byte{byte(c)}) + "b"
		u, err := ParseURI(FileURI(path).String())
		if got, nerr := u.Native(); err != nil || nerr != nil || c != '/' && got != path {
			t.Errorf("byte %#x: %q, %v, %v", c, got, err, nerr)
		}
	}
}
