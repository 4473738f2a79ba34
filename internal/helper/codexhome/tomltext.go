package codexhome

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// scalarText renders a scalar as the reference's writer does.
func scalarText(v *unstable.Node) (string, error) {
	raw := string(v.Data)
	switch v.Kind {
	case unstable.String:
		return quote(raw), nil
	case unstable.Bool:
		return raw, nil
	case unstable.Integer:
		n, err := strconv.ParseInt(strings.TrimPrefix(raw, "+"), 0, 64)
		if err != nil {
			n, err = strconv.ParseInt(strings.ReplaceAll(strings.TrimPrefix(raw, "+"), "_", ""), 0, 64)
		}
		return strconv.FormatInt(n, 10), err
	case unstable.Float:
		return floatText(raw)
	case unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		return dateText(raw), nil
	}
	return "", fmt.Errorf("1:1: unexpected %s", v.Kind)
}

func floatText(raw string) (string, error) {
	switch raw {
	case "nan", "+nan", "-nan":
		return "nan", nil
	case "inf", "+inf":
		return "inf", nil
	case "-inf":
		return raw, nil
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(raw, "_", ""), 64)
	if err != nil || math.IsInf(f, 0) {
		return "", fmt.Errorf("1:1: %s is no float", raw)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text, nil
}

// dateText normalises a date or time: T and Z, and no zeros at the end of a
// fraction, of which nine digits count.
func dateText(raw string) string {
	text := strings.NewReplacer(" ", "T", "t", "T", "z", "Z").Replace(raw)
	dot := strings.IndexByte(text, '.')
	if dot < 0 {
		return text
	}
	end := dot + 1
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	fraction := strings.TrimRight(text[dot+1:min(end, dot+10)], "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	return text[:dot] + fraction + text[end:]
}

// shape is what decides in which of the four notations a string is written.
type shape struct {
	single, double  int // longest runs of quotes
	control, escape bool
	newline         bool
}

func shapeOf(s string) (m shape) {
	single, double := 0, 0
	for i := range len(s) {
		c := s[i]
		if c != '\'' {
			single = 0
		}
		if c != '"' {
			double = 0
		}
		switch {
		case c == '\'':
			single++
			m.single = max(m.single, single)
		case c == '"':
			double++
			m.double = max(m.double, double)
		case c == '\\':
			m.escape = true
		case c == '\n':
			m.newline = true
		case c < 0x20 || c == 0x7f:
			m.control = true
		}
	}
	return m
}

// quote writes a string in the most readable notation that can hold it.
func quote(s string) string {
	m := shapeOf(s)
	open := ""
	if m.newline {
		open = "\n"
	}
	switch {
	case !m.control && !m.escape && m.double == 0 && !m.newline:
		return `"` + s + `"`
	case !m.control && m.single == 0 && !m.newline:
		return "'" + s + "'"
	case !m.control && !m.escape && m.double <= 2:
		return `"""` + open + s + `"""`
	case !m.control && m.single <= 2:
		return "'''" + open + s + "'''"
	case m.newline:
		return `"""` + open + escape(s, true) + `"""`
	}
	return `"` + escape(s, false) + `"`
}

func escape(s string, lines bool) string {
	var b strings.Builder
	run := 0
	for i := range len(s) {
		c := s[i]
		if c == '"' {
			run++
		} else {
			run = 0
		}
		switch {
		case c == '\n' && lines:
			b.WriteByte(c)
		case c == '"' && lines && run <= 2:
			b.WriteByte(c)
		case c == '"':
			b.WriteString(`\"`)
			run = 0
		case c == '\\':
			b.WriteString(`\\`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\f':
			b.WriteString(`\f`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// quoteKey writes a key.
func quoteKey(s string) string {
	bare := s != ""
	for i := range len(s) {
		c := s[i]
		bare = bare && (c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	m := shapeOf(s)
	m.control = m.control || m.newline
	switch {
	case bare:
		return s
	case !m.control && !m.escape && m.double == 0:
		return `"` + s + `"`
	case !m.control && m.single == 0:
		return "'" + s + "'"
	}
	return `"` + escape(s, false) + `"`
}
