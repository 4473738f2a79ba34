package discover

import (
	"strings"

	"github.com/exec-server/exec-server/internal/proto"
)

// reading is how a value is read.
type reading int

const (
	anything reading = iota // whatever has the form of JSON
	strict                  // no deeper than the protocol's own messages, text that is Unicode
)

// parser goes through JSON text without keeping it. The text is UTF-8. It takes
// no more of the stack for a deep value than for a flat one.
type parser struct {
	text   string
	pos    int
	failed bool
	open   []byte // the ends of the arrays and objects around pos
}

func (p *parser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) accept(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// end accepts the end of an array or object that has just begun.
func (p *parser) end(c byte) bool {
	p.space()
	return p.accept(c)
}

// next says whether there is another item behind the one that was read.
func (p *parser) next(end byte) bool {
	p.space()
	if p.accept(',') {
		return true
	}
	if !p.accept(end) {
		p.failed = true
	}
	return false
}

// value passes over a value. Around it is one array or object.
func (p *parser) value(how reading) {
	p.open = p.open[:0]
	for !p.failed {
		p.space()
		if !p.scalar(how) {
			continue // it has begun an array or object with something in it
		}
		if !p.close(how) {
			return
		}
	}
}

// scalar passes over a scalar or an empty array or object, or the beginning of
// another one, and then reports false.
func (p *parser) scalar(how reading) bool {
	if p.pos == len(p.text) {
		p.failed = true
		return true
	}
	switch c := p.text[p.pos]; c {
	case '{', '[':
		p.pos++
		end := c + 2 // '}' or ']'
		if how == strict && len(p.open)+2 > proto.MaxDepth {
			p.failed = true
			return true
		}
		if p.end(end) {
			return true
		}
		p.open = append(p.open, end)
		if end == '}' {
			p.key(how)
		}
		return false
	case '"':
		p.str(how)
	case 't':
		p.word("true")
	case 'f':
		p.word("false")
	case 'n':
		p.word("null")
	default:
		p.number()
	}
	return true
}

// close goes on to the next item of the innermost array or object that has one,
// and reports false if there is none.
func (p *parser) close(how reading) bool {
	for len(p.open) > 0 && !p.failed {
		end := p.open[len(p.open)-1]
		if p.next(end) {
			if end == '}' {
				p.key(how)
			}
			return true
		}
		p.open = p.open[:len(p.open)-1]
	}
	return false
}

// key passes over a key and its colon.
func (p *parser) key(how reading) {
	p.space()
	p.str(how)
	if p.space(); !p.accept(':') {
		p.failed = true
	}
}

func (p *parser) word(w string) {
	if !strings.HasPrefix(p.text[p.pos:], w) {
		p.failed = true
		return
	}
	p.pos += len(w)
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) number() {
	p.accept('-')
	ok := p.accept('0') || p.digits()
	if ok && p.accept('.') {
		ok = p.digits()
	}
	if ok && (p.accept('e') || p.accept('E')) {
		_ = p.accept('+') || p.accept('-')
		ok = p.digits()
	}
	p.failed = p.failed || !ok
}

// str passes over a string.
func (p *parser) str(how reading) {
	start := p.pos
	if !p.accept('"') {
		p.failed = true
		return
	}
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == '"':
			if how == strict {
				_, err := proto.Parse([]byte(p.text[start:p.pos]))
				p.failed = p.failed || err != nil
			}
			return
		case c < 0x20:
			p.failed = true
			return
		case c == '\\':
			p.escape()
		}
	}
	p.failed = true
}

// escape passes over what is behind a backslash, which may name half a
// character.
func (p *parser) escape() {
	if p.pos == len(p.text) {
		return
	}
	c := p.text[p.pos]
	p.pos++
	if c != 'u' {
		p.failed = p.failed || strings.IndexByte(`"\/bfnrt`, c) < 0
		return
	}
	for range 4 {
		if p.pos == len(p.text) || strings.IndexByte("0123456789abcdefABCDEF", p.text[p.pos]) < 0 {
			p.failed = true
			return
		}
		p.pos++
	}
}

// decoded reads a string.
func (p *parser) decoded() (string, bool) {
	start := p.pos
	p.str(anything)
	if p.failed {
		return "", false
	}
	v, err := proto.Parse([]byte(p.text[start:p.pos]))
	return v.Str(), err == nil
}
