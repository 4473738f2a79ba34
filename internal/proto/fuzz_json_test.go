package proto

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse holds Parse against encoding/json: what we take, it takes, and with
// the same contents; what only it takes breaks a rule of the protocol.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"m","params":{"a":[1,-2.5e3,true,false,null,"x\n\ud83d\ude00"]}}`,
		`{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `[[[[]]]]`, `01`, `1.`, `{"":{}} `, "[\"\x01\"]", `"\u0041\\"`,
		strings.Repeat("[", 128) + strings.Repeat("]", 128),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		if err == nil {
			var want any
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&want); err != nil || !json.Valid(text) {
				t.Fatalf("we accept %q, which is not JSON: %v", text, err)
			}
			if got := plain(v); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q is %v, want %v", text, got, want)
			}
			if back, err := Parse(v.AppendJSON(nil)); err != nil || !reflect.DeepEqual(plain(back), want) {
				t.Fatalf("%q is written as %q: %v", text, v.AppendJSON(nil), err)
			}
			return
		}
		if !json.Valid(text) || !utf8.Valid(text) || loneSurrogate(text) {
			return
		}
		if repeated, depth, values := shape(text); !repeated && depth <= MaxDepth && values <= MaxValues {
			t.Fatalf("we refuse %q: %v", text, err)
		}
	})
}

// plain turns a value into what encoding/json would make of it.
func plain(v Value) any {
	switch v.Kind {
	case True, False:
		return v.Kind == True
	case Number:
		return json.Number(v.Raw())
	case String:
		return v.Str()
	case Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plain(v.At(i))
		}
		return list
	case Object:
		m := make(map[string]any, v.Len())
		for i := range v.Len() {
			m[v.Key(i)] = plain(v.At(i))
		}
		return m
	}
	return nil
}

// loneSurrogate says whether valid JSON has an escape that is half a character.
func loneSurrogate(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		r, _ := hex4(text[i+1:])
		i += 4
		if r < 0xD800 || r > 0xDFFF {
			continue
		}
		if r >= 0xDC00 || !bytes.HasPrefix(text[i+1:], []byte(`\u`)) {
			return true
		}
		if low, _ := hex4(text[i+3:]); low < 0xDC00 || low > 0xDFFF {
			return true
		}
		i += 6
	}
	return false
}

// shape looks at valid JSON with the token reader of encoding/json.
func shape(text []byte) (repeated bool, depth, values int) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	type level struct {
		keys   map[string]bool // nil in arrays
		isName bool
	}
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			return repeated, depth, values
		}
		if n := len(open); n > 0 && open[n-1].isName {
			if name, ok := token.(string); ok {
				repeated = repeated || open[n-1].keys[name]
				open[n-1].keys[name], open[n-1].isName = true, false
				continue
			}
		}
		switch token {
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		case json.Delim('{'):
			values++
			open = append(open, level{map[string]bool{}, true})
			depth = max(depth, len(open))
			continue
		case json.Delim('['):
			values++
			open = append(open, level{})
			depth = max(depth, len(open))
			continue
		default:
			values++
		}
		if n := len(open); n > 0 && open[n-1].keys != nil {
			open[n-1].isName = true
		}
	}
}
