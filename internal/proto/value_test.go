package proto

import (
	"math"
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", text, err)
	}
	return v
}

func TestStringsAreUnescaped(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`""`, ""},
		{`"plain é"`, "plain é"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0000\u001f\u00e9\u20AC"`, "\x00\x1fé€"},
		{`"\ud83d\ude00\uD800\uDC00"`, "😀\U00010000"},
		{`"é\u00e9😀\ud83d\ude00!"`, "éé😀😀!"},
		{`"\\u0041"`, `\u0041`},
		{`"\uffff\ufffd"`, "\uffff\ufffd"},
	} {
		if got := parse(t, test.text).Str(); got != test.want {
			t.Errorf("%s is %q, want %q", test.text, got, test.want)
		}
	}
}

func TestMembersAreFoundByName(t *testing.T) {
	v := parse(t, `{"a":1,"\u0062":"two","C":null,"":true,"é":[0,{"x":false}]}`)
	for _, test := range []struct {
		name string
		want Kind
	}{
		{"a", Number}, {"b", String}, {"C", Null}, {"", True}, {"é", Array}, {"c", Absent}, {"A", Absent}, {`\u0062`, Absent},
	} {
		if got := v.Get(test.name).Kind; got != test.want {
			t.Errorf("member %q has kind %d, want %d", test.name, got, test.want)
		}
	}
	if v.Len() != 5 || v.Key(1) != "b" || v.At(1).Str() != "two" || string(v.At(0).Raw()) != "1" {
		t.Error("members are not in their order")
	}
	if v.Get("é").Len() != 2 || v.Get("é").At(1).Get("x").Kind != False {
		t.Error("the nested member is not found")
	}
	if got := parse(t, `[1]`).Get("a").Kind; got != Absent {
		t.Errorf("an array has a member of kind %d", got)
	}
}

func TestIntegersAreExact(t *testing.T) {
	for _, test := range []struct {
		text          string
		i64           int64
		isI64, isUint bool
	}{
		{"0", 0, true, true},
		{"-0", 0, true, false},
		{"9223372036854775807", math.MaxInt64, true, true},
		{"-9223372036854775808", math.MinInt64, true, false},
		{"9223372036854775808", 0, false, true},
		{"18446744073709551615", 0, false, true},
		{"18446744073709551616", 0, false, false},
		{"-9223372036854775809", 0, false, false},
		{"1.0", 0, false, false},
		{"1e2", 0, false, false},
		{`"1"`, 0, false, false},
		{"null", 0, false, false},
	} {
		v := parse(t, test.text)
		if n, ok := v.Int64(); ok != test.isI64 || ok && n != test.i64 {
			t.Errorf("%s is the signed integer %d, %v", test.text, n, ok)
		}
		if _, ok := v.Uint64(); ok != test.isUint {
			t.Errorf("%s is an unsigned integer: %v", test.text, ok)
		}
	}
}

func TestCloneDoesNotPointIntoTheMessage(t *testing.T) {
	text := []byte(`"abc"`)
	v, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	kept := v.Clone()
	copy(text, "XXXXX")
	if kept.Str() != "abc" {
		t.Errorf("the clone is %q now", kept.Str())
	}
}

// A message of many keys must not cost the square of their number.
func TestParseOfManyKeysIsLinear(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"params":{`)
	for i := range 100000 {
		b.WriteString(`"` + string(AppendUint(nil, uint64(i))) + `":0,`)
	}
	b.WriteString(`"x":0}}`)
	start := time.Now()
	parse(t, b.String())
	if d := time.Since(start); d > 5*time.Second { // quadratic takes half a minute
		t.Errorf("parsing 100000 keys took %v", d)
	}
}
