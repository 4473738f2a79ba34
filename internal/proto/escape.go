package proto

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

func (p *parser) escape() error {
	if p.accept(`"\/bfnrt`) {
		return nil
	}
	if !p.accept("u") {
		return p.fail("invalid escape")
	}
	r, ok := hex4(p.text[p.pos:])
	if !ok {
		return p.fail("invalid escape")
	}
	p.pos += 4
	if !utf16.IsSurrogate(r) {
		return nil
	}
	if r >= 0xDC00 || !bytes.HasPrefix(p.text[p.pos:], []byte(`\u`)) {
		return p.fail("lone leading surrogate in hex escape")
	}
	low, ok := hex4(p.text[p.pos+2:])
	if !ok || low < 0xDC00 || low > 0xDFFF {
		return p.fail("lone leading surrogate in hex escape")
	}
	p.pos += 6
	return nil
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape decodes the inside of a string that the parser has accepted.
func unescape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		switch text[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(text[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(text[i+3:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, text[i])
		}
	}
	return out
}
