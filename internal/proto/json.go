package proto

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Limits of a message. The numbers are the reference executor's.
const (
	MaxValues = 262144
	MaxDepth  = 127
)

// Parse reads one JSON text. Unlike encoding/json it refuses repeated keys,
// over-long and over-deep messages, invalid UTF-8 and lone surrogates, in one
// pass over the text.
func Parse(text []byte) (Value, error) {
	p := parser{text: text}
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.pos < len(text) {
		return Value{}, p.fail("trailing characters")
	}
	return v, nil
}

type parser struct {
	text   []byte
	pos    int
	values int
}

func (p *parser) fail(what string) error {
	done := p.text[:min(p.pos, len(p.text))]
	line := 1 + bytes.Count(done, []byte("\n"))
	column := len(done) - 1 - bytes.LastIndexByte(done, '\n')
	if p.pos < len(p.text) {
		column++
	}
	return fmt.Errorf("%s at line %d column %d", what, line, column)
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (Value, error) {
	p.space()
	if p.values++; p.values > MaxValues {
		return Value{}, fmt.Errorf("JSON-RPC message exceeds the limit of %d JSON values", MaxValues)
	}
	if p.pos >= len(p.text) {
		return Value{}, p.fail("EOF while parsing a value")
	}
	switch c := p.text[p.pos]; {
	case c == '{' || c == '[':
		if depth >= MaxDepth {
			return Value{}, p.fail("recursion limit exceeded")
		}
		p.pos++
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		p.pos++
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.word("true", True)
	case c == 'f':
		return p.word("false", False)
	case c == 'n':
		return p.word("null", Null)
	}
	return Value{}, p.fail("expected value")
}

func (p *parser) word(w string, k Kind) (Value, error) {
	if !bytes.HasPrefix(p.text[p.pos:], []byte(w)) {
		return Value{}, p.fail("expected ident")
	}
	p.pos += len(w)
	return Value{Kind: k}, nil
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) accept(set string) bool {
	if p.pos < len(p.text) && bytes.IndexByte([]byte(set), p.text[p.pos]) >= 0 {
		p.pos++
		return true
	}
	return false
}

func (p *parser) number() (Value, error) {
	start := p.pos
	p.accept("-")
	if !p.accept("0") && !p.digits() {
		return Value{}, p.fail("invalid number")
	}
	if p.accept(".") && !p.digits() {
		return Value{}, p.fail("invalid number")
	}
	if p.accept("eE") {
		p.accept("+-")
		if !p.digits() {
			return Value{}, p.fail("invalid number")
		}
	}
	if p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		return Value{}, p.fail("invalid number")
	}
	return Value{Kind: Number, text: p.text[start:p.pos]}, nil
}

// str reads a string whose opening quote has been passed.
func (p *parser) str() (Value, error) {
	start := p.pos
	v := Value{Kind: String}
	ascii := true
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case c == '"':
			v.text = p.text[start:p.pos]
			if !ascii && !utf8.Valid(v.text) {
				return Value{}, p.fail("invalid unicode code point")
			}
			p.pos++
			return v, nil
		case c == '\\':
			v.escaped = true
			p.pos++
			if err := p.escape(); err != nil {
				return Value{}, err
			}
		case c < 0x20:
			return Value{}, p.fail("control character (\\u0000-\\u001F) found while parsing a string")
		default:
			if c >= 0x80 {
				ascii = false
			}
			p.pos++
		}
	}
	return Value{}, p.fail("EOF while parsing a string")
}

func (p *parser) array(depth int) (Value, error) {
	v := Value{Kind: Array}
	if p.space(); p.accept("]") {
		return v, nil
	}
	for {
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		v.items = append(v.items, item)
		p.space()
		if p.accept("]") {
			return v, nil
		}
		if !p.accept(",") {
			return Value{}, p.fail("expected `,` or `]`")
		}
	}
}

func (p *parser) object(depth int) (Value, error) {
	v := Value{Kind: Object}
	if p.space(); p.accept("}") {
		return v, nil
	}
	var seen map[string]bool // only for objects too large to scan
	for {
		if p.space(); !p.accept(`"`) {
			return Value{}, p.fail("key must be a string")
		}
		key, err := p.str()
		if err != nil {
			return Value{}, err
		}
		name := key.Bytes()
		var repeated bool
		if seen, repeated = v.hasKey(seen, name); repeated {
			return Value{}, fmt.Errorf("duplicate JSON object key `%s`", name)
		}
		if p.space(); !p.accept(":") {
			return Value{}, p.fail("expected `:`")
		}
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		v.keys, v.items = append(v.keys, key), append(v.items, item)
		p.space()
		if p.accept("}") {
			return v, nil
		}
		if !p.accept(",") {
			return Value{}, p.fail("expected `,` or `}`")
		}
	}
}

// hasKey says whether name is a key already. A plain scan is faster than a map
// for the objects of the protocol; a map keeps hostile ones linear.
func (v *Value) hasKey(seen map[string]bool, name []byte) (map[string]bool, bool) {
	if len(v.keys) < 32 {
		return nil, v.Get(string(name)).Kind != Absent
	}
	if seen == nil {
		seen = make(map[string]bool, 2*len(v.keys))
		for _, k := range v.keys {
			seen[k.Str()] = true
		}
	}
	if seen[string(name)] {
		return seen, true
	}
	seen[string(name)] = true
	return seen, false
}
