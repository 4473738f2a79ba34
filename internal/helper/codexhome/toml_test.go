package codexhome

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// Each pair is what the reference made of a document.
func TestTOMLIsWrittenAsTheReferenceWritesIt(t *testing.T) {
	for _, test := range []struct{ in, out string }{
		{`a="plain"`, "a = \"plain\"\n"},
		{`a="with \"quote\""`, "a = 'with \"quote\"'\n"},
		{`a="with 'single'"`, "a = \"with 'single'\"\n"},
		{`a="both ' and \""`, "a = \"\"\"both ' and \"\"\"\"\n"},
		{`a="tab\tx"`, "a = \"tab\\tx\"\n"},
		{`a="nl\nx"`, "a = \"\"\"\nnl\nx\"\"\"\n"},
		{`a="ctrl\u0001"`, "a = \"ctrl\\u0001\"\n"},
		{`a="\u007f é"`, "a = \"\\u007F é\"\n"},
		{`a="back\\slash"`, "a = 'back\\slash'\n"},
		{`a="back\\slash ' q"`, "a = '''back\\slash ' q'''\n"},
		{`a="nl and \"\"\" dq\nx"`, "a = '''\nnl and \"\"\" dq\nx'''\n"},
		{`a="cr\r\nx"`, "a = \"\"\"\ncr\\r\nx\"\"\"\n"},
		{`a="\"\"\"'''"`, "a = \"\\\"\\\"\\\"'''\"\n"},
		{`a="\nlead"`, "a = \"\"\"\n\nlead\"\"\"\n"},
		{"a=1e6\nb=1e22\nc=1.0\nd=-0.0\ne=nan\nf=-inf\ng=1e-7", "a = 1000000.0\nb = 10000000000000000000000.0\nc = 1.0\nd = -0.0\ne = nan\nf = -inf\ng = 0.0000001\n"},
		{"a=1_000\nb=0xff\nc=0o17\nd=0b11\ne=-5\nf=+7", "a = 1000\nb = 255\nc = 15\nd = 3\ne = -5\nf = 7\n"},
		{"a=1979-05-27T07:32:00.999999-07:00\nb=1979-05-27 07:32:00Z\nc=07:32:00.1230\nd=1979-05-27t07:32:00z\ne=1979-05-27", "a = 1979-05-27T07:32:00.999999-07:00\nb = 1979-05-27T07:32:00Z\nc = 07:32:00.123\nd = 1979-05-27T07:32:00Z\ne = 1979-05-27\n"},
		{"a=[1, 2,\n 3]\nb=[]\nc=[1,\"x\",{c=3}]\nd=[[1],[{e=4}]]", "a = [1, 2, 3]\nb = []\nc = [1, \"x\", { c = 3 }]\nd = [[1], [{ e = 4 }]]\n"},
		{"t={b=1,a={c=2}}\nx=1", "x = 1\n\n[t]\nb = 1\n\n[t.a]\nc = 2\n"},
		{"l=[{a=1},{b=2}]\nm=[{}]", "[[l]]\na = 1\n\n[[l]]\nb = 2\n\n[[m]]\n"},
		{"[[aot]]\nn=1\n[[aot]]\nn=2\n[aot.in]\nk=1\n[empty]\n[p.q]\nr=1", "[[aot]]\nn = 1\n\n[[aot]]\nn = 2\n\n[aot.in]\nk = 1\n\n[empty]\n\n[p.q]\nr = 1\n"},
		{"d.k.x=1\n\"k 1\"=1\n\"\"=2\n'k\"q'=3\n\"k\\nn\"=5\n\"ü\"=6\n-_9=7", "\"k 1\" = 1\n\"\" = 2\n'k\"q' = 3\n\"k\\nn\" = 5\n\"ü\" = 6\n-_9 = 7\n\n[d.k]\nx = 1\n"},
		{"\ufeffa=1\r\nb=true", "a = 1\nb = true\n"},
	} {
		n, err := parseTOML([]byte(test.in))
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if got := n.String(); got != test.out {
			t.Errorf("%s\n got %q\nwant %q", test.in, got, test.out)
		}
	}
}

func TestTOMLErrorsSayWhere(t *testing.T) {
	for in, want := range map[string]string{
		"a = 1\n[b\n": "2:3: ", "a = 1\na = 2\n": "2:1: ", "a = 1\ny = \n": "2:5: ", "[x]\n[x]\n": "2:2: ", "a = \"x\" y": "1:9: ",
		"a = 99999999999999999999": "1:5: ", "a = " + strings.Repeat("[", 200) + strings.Repeat("]", 200): "1:85: ", "a=\xff": "1:1: ",
	} {
		if _, err := parseTOML([]byte(in)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v", in, err)
		}
	}
}

func TestProjection(t *testing.T) {
	n, err := parseTOML([]byte("model='m'\n[a]\nz=1\nb=2\n[a.sub]\nq=1\n[[l]]\nn=1\n[e]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		paths [][]string
		want  string
	}{
		{[][]string{{"nope"}}, ""},
		{[][]string{{"model", "x", "y"}}, "model = \"m\"\n"}, // through a scalar
		{[][]string{{"a", "sub"}}, "[a.sub]\nq = 1\n"},
		{[][]string{{"a", "nope"}}, "[a]\n"}, // the tables on the way are there
		{[][]string{{"a", "z"}, {"model"}, {"a", "b"}}, "model = \"m\"\n\n[a]\nz = 1\nb = 2\n"},
		{[][]string{{"a", "b"}, {"a"}}, "[a]\nz = 1\nb = 2\n\n[a.sub]\nq = 1\n"},
		{[][]string{{"l", "n"}}, "[[l]]\nn = 1\n"},
		{[][]string{{"e", "x"}}, "[e]\n"},
	} {
		if got := n.project(wanted(test.paths)).String(); got != test.want {
			t.Errorf("%v: %q, want %q", test.paths, got, test.want)
		}
	}
}

// What is written means what was read.
func FuzzTOML(f *testing.F) {
	for _, s := range []string{"a=1\n[b]\nc='''x'''\n[[d]]\ne=[{f=1}]\n", "a.b=1e5\na.\"c\\n\"=1979-05-27T07:32:00Z", "x=[[],[{}]]\ny={z={}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := parseTOML(data)
		if err != nil {
			return
		}
		text := n.String()
		var before, after map[string]any
		if err := toml.Unmarshal([]byte(strings.TrimPrefix(string(data), "\ufeff")), &before); err != nil {
			t.Fatalf("accepted is %q: %v", data, err)
		}
		if err := toml.Unmarshal([]byte(text), &after); err != nil {
			t.Fatalf("%q is written as %q: %v", data, text, err)
		}
		again, err := parseTOML([]byte(text))
		if err != nil || again.String() != text {
			t.Errorf("%q is written as %q, and then as %q, %v", data, text, again, err)
		}
		if len(before) != len(after) {
			t.Errorf("%q is written as %q", data, text)
		}
		for key, v := range before {
			if s, ok := v.(string); ok && !reflect.DeepEqual(after[key], s) {
				t.Errorf("%q becomes %q", s, after[key])
			}
		}
	})
}
