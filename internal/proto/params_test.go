package proto

import (
	"reflect"
	"strings"
	"testing"
)

func TestBase64IsStandardPaddedAndStrict(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "aA==": "h", "aGU=": "he", "aGVs": "hel", "+/+/": "\xfb\xff\xbf", "AAAA": "\x00\x00\x00",
	} {
		if got, err := DecodeBase64([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"a", "aA", "aA=", "aGU", "=", "====", "aA===", "aA==aA==", "aGVs=", "a=A=",
		"!aaa", "-_-_", "aG Vs", " aGVs", "aGVs ", "aGVs\n", "aG\nVs", "aGVs\r\n", "\n",
		"aB==", "aGV=", // bits behind the last byte
		"aGV\x00", "éé",
	} {
		if got, err := DecodeBase64([]byte(text)); err == nil {
			t.Errorf("%q is accepted as %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"!aaa":   "Invalid symbol 33, offset 0.",
		"aGVs\n": "Invalid symbol 10, offset 4.",
		"aA":     "Invalid padding",
		"a=A=":   "Invalid padding",
		"aR==":   "Invalid last symbol 82, offset 1.",
	} {
		if _, err := DecodeBase64([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q is reported as %v, want %s", text, err, want)
		}
	}
}

func TestBase64IsWrittenWithPadding(t *testing.T) {
	for n := range 10 {
		data := []byte("\x00\xff\xfe23456789")[:n]
		text := AppendBase64(nil, data)
		got, err := DecodeBase64(text[1 : len(text)-1])
		if err != nil || string(got) != string(data) {
			t.Errorf("%q is written as %s", data, text)
		}
	}
}

func TestNoParams(t *testing.T) {
	for text, ok := range map[string]bool{`null`: true, `{}`: true, `[]`: false, `{"x":1}`: false, `""`: false, `0`: false} {
		if err := NoParams(parse(t, text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := NoParams(Value{}); err != nil {
		t.Errorf("absent: %v", err)
	}
}

// Each reader is tried on members of every kind: m is missing, n is null.
func TestReadersOfParams(t *testing.T) {
	const object = `{"n":null,"b":true,"i":7,"neg":-1,"f":1.5,"s":"text","l":["a","b"],"mixed":["a",1],"o":{"k":"v"},"bad":{"k":1},"u":"file:///x"}`
	none := any(nil)
	for _, test := range []struct {
		name string
		read func(*Params) any
		want any
		err  string
	}{
		{"String s", func(p *Params) any { return p.String("s") }, "text", ""},
		{"String m", func(p *Params) any { return p.String("m") }, none, "missing field `m`"},
		{"String n", func(p *Params) any { return p.String("n") }, none, "invalid type: null, expected a string"},
		{"String i", func(p *Params) any { return p.String("i") }, none, "invalid type: number, expected a string"},
		{"OptString m", func(p *Params) any { s, ok := p.OptString("m"); return [2]any{s, ok} }, [2]any{"", false}, ""},
		{"OptString n", func(p *Params) any { s, ok := p.OptString("n"); return [2]any{s, ok} }, [2]any{"", false}, ""},
		{"OptString s", func(p *Params) any { s, ok := p.OptString("s"); return [2]any{s, ok} }, [2]any{"text", true}, ""},
		{"OptString b", func(p *Params) any { s, _ := p.OptString("b"); return s }, none, "invalid type: boolean, expected a string"},
		{"Bool b", func(p *Params) any { return p.Bool("b") }, true, ""},
		{"Bool m", func(p *Params) any { return p.Bool("m") }, none, "missing field `m`"},
		{"BoolOr m", func(p *Params) any { return p.BoolOr("m", true) }, true, ""},
		{"BoolOr n", func(p *Params) any { return p.BoolOr("n", true) }, none, "invalid type: null, expected a boolean"},
		{"NullableBool n", func(p *Params) any { return p.NullableBool("n", true) }, true, ""},
		{"NullableBool s", func(p *Params) any { return p.NullableBool("s", true) }, none, `invalid type: string "text", expected a boolean`},
		{"Uint i", func(p *Params) any { return p.Uint("i") }, uint64(7), ""},
		{"Uint neg", func(p *Params) any { return p.Uint("neg") }, none, "invalid number"},
		{"Uint f", func(p *Params) any { return p.Uint("f") }, none, "invalid number"},
		{"Uint s", func(p *Params) any { return p.Uint("s") }, none, `invalid type: string "text", expected u64`},
		{"OptUint n", func(p *Params) any { n, ok := p.OptUint("n"); return [2]any{n, ok} }, [2]any{uint64(0), false}, ""},
		{"Strings l", func(p *Params) any { return p.Strings(p.Required("l")) }, []string{"a", "b"}, ""},
		{"Strings mixed", func(p *Params) any { return p.Strings(p.Required("mixed")) }, none, "invalid type: number, expected a string"},
		{"Strings o", func(p *Params) any { return p.Strings(p.Required("o")) }, none, "invalid type: map, expected a sequence"},
		{"Map o", func(p *Params) any { return p.Map(p.Required("o")) }, map[string]string{"k": "v"}, ""},
		{"Map bad", func(p *Params) any { return p.Map(p.Required("bad")) }, none, "invalid type: number, expected a string"},
		{"Map l", func(p *Params) any { return p.Map(p.Required("l")) }, none, "invalid type: sequence, expected a map"},
		{"Variant s", func(p *Params) any { return p.Variant(p.Required("s"), "no", "text") }, "text", ""},
		{"Variant of 1", func(p *Params) any { return p.Variant(p.Required("s"), "a") }, none, "unknown variant `text`, expected `a`"},
		{"Variant of 2", func(p *Params) any { return p.Variant(p.Required("s"), "a", "b") }, none, "unknown variant `text`, expected `a` or `b`"},
		{"Variant of 3", func(p *Params) any { return p.Variant(p.Required("s"), "a", "b", "c") }, none, "unknown variant `text`, expected one of `a`, `b`, `c`"},
		{"URI u", func(p *Params) any { return p.URI("u").String() }, "file:///x", ""},
		{"URI s", func(p *Params) any { return p.URI("s").String() }, none, "invalid URI: relative URL without a base"},
		{"OptURI n", func(p *Params) any { _, ok := p.OptURI("n"); return ok }, false, ""},
		{"first error", func(p *Params) any { p.String("m"); p.Uint("s"); return nil }, none, "missing field `m`"},
	} {
		p := ParamsOf(parse(t, object), "Test")
		got := test.read(p)
		if err := p.Err(); err != nil || test.err != "" {
			if err == nil || err.Error() != test.err || WireError(err).Code != CodeInvalidParams {
				t.Errorf("%s: error %v, want %q", test.name, err, test.err)
			}
		} else if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestParamsThatAreNoObject(t *testing.T) {
	for text, word := range map[string]string{`null`: "null", `[]`: "sequence", `1`: "number", `true`: "boolean", `"s"`: `string "s"`} {
		p := ParamsOf(parse(t, text), "Thing")
		_ = p.String("x")
		if err := p.Err(); err == nil || err.Error() != "invalid type: "+word+", expected struct Thing" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := ParamsOf(Value{}, "Thing").Err(); err == nil || !strings.Contains(err.Error(), "expected struct Thing") {
		t.Errorf("absent: %v", err)
	}
}
