package proto

import (
	"strconv"
	"strings"
	"testing"
)

func TestParseAcceptsJSON(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `""`, `[]`, `{}`, " \t\r\n{ } ", `[1,2 , 3]`, `{"a":{"b":[]}}`,
		`0`, `-0`, `1`, `-1`, `10`, `1.5`, `1e5`, `1E+5`, `1e-5`, `0.1`, `0e1`, `123456789012345678901234567890`,
		`"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00"`, "\"\u007f \u2028é😀\"",
		`{"a":1,"A":2,"":3," a":4}`,
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}

func TestParseRefusesWhatIsNotJSON(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, "EOF while parsing a value at line 1 column 0"},
		{`x`, "expected value at line 1 column 1"},
		{"\n x", "expected value at line 2 column 2"},
		{`{} {}`, "trailing characters"},
		{`{}x`, "trailing characters"},
		{`nul`, "expected ident"},
		{`tru`, "expected ident"},
		{`True`, "expected value"},
		{`'a'`, "expected value"},
		{`[1,]`, "expected value"},
		{`[1 2]`, "expected `,` or `]`"},
		{`[1`, "expected `,` or `]`"},
		{`[`, "EOF while parsing a value"},
		{`{`, "key must be a string"},
		{`{a:1}`, "key must be a string"},
		{`{"a":1,}`, "key must be a string"},
		{`{"a" 1}`, "expected `:`"},
		{`{"a":}`, "expected value"},
		{`{"a":1 "b":2}`, "expected `,` or `}`"},
		{`01`, "invalid number"},
		{`-`, "invalid number"},
		{`-x`, "invalid number"},
		{`1.`, "invalid number"},
		{`.5`, "expected value"},
		{`+1`, "expected value"},
		{`1e`, "invalid number"},
		{`1e+`, "invalid number"},
		{`-01`, "invalid number"},
		{`0x10`, "trailing characters"},
		{`NaN`, "expected value"},
		{`"a`, "EOF while parsing a string"},
		{`"\`, "invalid escape"},
		{`"\x41"`, "invalid escape"},
		{`"\u12"`, "invalid escape"},
		{`"\u12g4"`, "invalid escape"},
		{`/* */1`, "expected value"},
		{"\xef\xbb\xbf{}", "expected value"}, // a byte order mark
	} {
		refused(t, []byte(test.text), test.want)
	}
}

func TestParseRefusesControlCharactersInStrings(t *testing.T) {
	for c := range byte(0x20) {
		refused(t, []byte{'"', 'a', c, '"'}, "control character")
		refused(t, []byte{'{', '"', c, '"', ':', '1', '}'}, "control character")
	}
}

func TestParseRefusesWhatIsNotUTF8(t *testing.T) {
	for _, s := range []string{
		"\x80", "\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x28\xa1", "é\xa9",
	} {
		refused(t, []byte(`"`+s+`"`), "invalid unicode code point")
		refused(t, []byte(`{"`+s+`":1}`), "invalid unicode code point")
	}
}

func TestParseRefusesLoneSurrogates(t *testing.T) {
	for _, s := range []string{
		`\ud800`, `\udc00`, `\udfff`, `\ud800\ud800`, `\ud800x`, `\ud800\n`, `\udc00\ud800`, `\ud800\u0041`, `\uDBFF\u`,
	} {
		refused(t, []byte(`"`+s+`"`), "surrogate")
	}
}

func TestParseRefusesRepeatedKeys(t *testing.T) {
	for _, test := range []struct{ text, key string }{
		{`{"a":1,"a":1}`, "a"},
		{`{"":1,"":2}`, ""},
		{`{"a":1,"\u0061":2}`, "a"},
		{`{"\u0061":1,"a":2}`, "a"},
		{`{"x":{"y":[{"b":1,"c":2,"b":null}]}}`, "b"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","jsonrpc":"2.0"}`, "jsonrpc"},
	} {
		refused(t, []byte(test.text), "duplicate JSON object key `"+test.key+"`")
	}
}

// Beyond some size an object's keys are kept in a table instead of being looked
// through.
func TestParseFindsRepeatedKeysInLargeObjects(t *testing.T) {
	name := func(i int) string { return "k" + strconv.Itoa(i) }
	for _, size := range []int{30, 31, 32, 33, 34, 100, 5000} {
		var b strings.Builder
		for i := range size {
			b.WriteString(`"` + name(i) + `":0,`)
		}
		if _, err := Parse([]byte("{" + b.String() + `"last":1}`)); err != nil {
			t.Fatalf("%d keys: %v", size, err)
		}
		for _, i := range []int{0, 1, size / 2, size - 1} {
			refused(t, []byte("{"+b.String()+`"`+name(i)+`":1}`), "duplicate JSON object key `"+name(i)+"`")
		}
		refused(t, []byte("{"+b.String()+`"l":1,"\u006c":1}`), "duplicate JSON object key `l`")
	}
}

func TestParseBoundsNesting(t *testing.T) {
	nest := func(n int, open, shut string) []byte {
		return []byte(strings.Repeat(open, n) + "0" + strings.Repeat(shut, n))
	}
	for _, b := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		if _, err := Parse(nest(MaxDepth, b[0], b[1])); err != nil {
			t.Errorf("%d levels of %s: %v", MaxDepth, b[0], err)
		}
		refused(t, nest(MaxDepth+1, b[0], b[1]), "recursion limit exceeded")
		refused(t, nest(1<<20, b[0], b[1]), "recursion limit exceeded")
	}
}

func TestParseBoundsTheNumberOfValues(t *testing.T) {
	list := func(n int) []byte { return []byte("[" + strings.Repeat("0,", n-1) + "0]") }
	if _, err := Parse(list(MaxValues - 1)); err != nil { // the list is a value too
		t.Error(err)
	}
	refused(t, list(MaxValues), "JSON-RPC message exceeds the limit of 262144 JSON values")
}

func refused(t *testing.T, text []byte, want string) {
	t.Helper()
	v, err := Parse(text)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Parse(%.80q) = %v; want an error with %q", text, err, want)
	}
	if v.Kind != Absent {
		t.Errorf("Parse(%.80q) returned a value with its error", text)
	}
}
