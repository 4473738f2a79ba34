package masking

import (
	"crypto/rand"
	"errors"
	"math/big"
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	// randomLetters make a placeholder that is found nowhere else.
	randomLetters = 32
	// moreThanLeast is how often what a pattern lets be repeated without end, or
	// often, is repeated beyond what it demands.
	moreThanLeast  = 32
	maxPlaceholder = 4 << 10 // bytes
	attempts       = 16
)

var errPlaceholder = errors.New("unable to generate a unique placeholder for a credential")

// placeholder makes what stands for a secret: something of the same form, since
// programs look at it, for which taken is false.
func (p *Provider) placeholder(secret string, taken func(string) bool) (string, error) {
	for range attempts {
		s, err := p.generate(secret)
		if err != nil {
			return "", err
		}
		if s != secret && !taken(s) {
			return s, nil
		}
	}
	return "", errPlaceholder
}

func (p *Provider) generate(secret string) (string, error) {
	if len(p.prefixes) > 0 {
		begin := p.prefixes[len(p.prefixes)-1]
		if p.has("GITHUB_TOKEN") || p.hostFrom != "" {
			begin = "ghp_"
		}
		for _, prefix := range p.prefixes {
			if strings.HasPrefix(secret, prefix) {
				begin = prefix
				break
			}
		}
		text := make([]byte, randomLetters)
		for i := range text {
			text[i] = letters[random(len(letters))]
		}
		return begin + "masked" + string(text), nil
	}
	pattern := p.Patterns[0]
	for i, format := range p.formats {
		if format.FindString(secret) == secret {
			pattern = p.Patterns[i]
			break
		}
	}
	return example(pattern)
}

// random is a number below n that cannot be guessed.
func random(n int) int {
	v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // it never fails
	}
	return int(v.Int64())
}

// example makes a text that all of a pattern matches.
func example(pattern string) (string, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if !write(&b, tree) {
		return "", errPlaceholder
	}
	whole, err := regexp.Compile(`^(?:` + pattern + `)$`)
	if err != nil || !whole.MatchString(b.String()) {
		return "", errPlaceholder
	}
	return b.String(), nil
}

// write writes what a part of a pattern matches. It fails if that is too long, or
// is nothing that a header could carry.
func write(b *strings.Builder, re *syntax.Regexp) bool {
	if b.Len() > maxPlaceholder {
		return false
	}
	least, most := 1, 1
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			b.WriteRune(r)
		}
		return true
	case syntax.OpCharClass:
		return writeOneOf(b, re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(letters[random(len(letters))])
		return true
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !write(b, sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		return write(b, re.Sub[random(len(re.Sub))])
	case syntax.OpCapture:
	case syntax.OpStar:
		least, most = 0, -1
	case syntax.OpPlus:
		most = -1
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		least, most = re.Min, re.Max
	case syntax.OpNoMatch:
		return false
	default: // of no width; whether it holds is looked at in the end
		return true
	}
	if most < 0 || most > least+moreThanLeast {
		most = least + moreThanLeast
	}
	for range least + random(most-least+1) {
		if !write(b, re.Sub[0]) {
			return false
		}
	}
	return true
}

// writeOneOf writes one of the visible ASCII characters of a class, which has the
// first and the last of each range.
func writeOneOf(b *strings.Builder, class []rune) bool {
	var all []rune
	for i := 0; i+1 < len(class); i += 2 {
		for r := max(class[i], '!'); r <= min(class[i+1], '~'); r++ {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return false
	}
	b.WriteRune(all[random(len(all))])
	return true
}
