package codexhome

import (
	"errors"
	"strings"
	"unicode/utf8"
)

var errFrontMatter = errors.New("the front matter cannot be used")

// parseSkill reads the front matter of a SKILL.md in a directory of that name.
func parseSkill(text, dir string) (Skill, error) {
	matter, ok := frontMatter(text)
	if !ok {
		return Skill{}, errFrontMatter
	}
	doc, err := parseYAML(matter)
	if err != nil {
		// People write "description: use this: …". The reference lets them.
		if doc, err = parseYAML(quoteValues(matter)); err != nil {
			return Skill{}, err
		}
	}
	var s Skill
	short, said := "", false
	r := reader{}
	s.Name, _ = r.str(doc, "name")
	s.Description, _ = r.str(doc, "description")
	if meta := r.table(doc, "metadata"); meta != nil {
		short, said = r.str(meta, "short-description")
	}
	if r.err != nil {
		return Skill{}, r.err
	}
	s.Name, s.Description = oneLine(s.Name), oneLine(s.Description)
	if s.Name == "" {
		s.Name = oneLine(dir)
	}
	if short = oneLine(short); said && short != "" {
		s.ShortDescription = &short
	}
	if s.Name == "" || s.Description == "" {
		return Skill{}, errFrontMatter
	}
	if utf8.RuneCountInString(s.Name) > maxName {
		return Skill{}, errName
	}
	return s, nil
}

// frontMatter is what stands between the first line, which is ---, and the next
// that is.
func frontMatter(text string) (string, bool) {
	var b strings.Builder
	first := true
	for line := range strings.Lines(text) {
		fence := strings.TrimSpace(line) == "---"
		switch {
		case first && !fence:
			return "", false
		case first:
			first = false
		case fence:
			return b.String(), b.Len() > 0
		default:
			b.WriteString(strings.TrimRight(line, "\r\n"))
			b.WriteByte('\n')
		}
	}
	return "", false
}

// quoteValues puts those values in quotes that stand on the line of their key and
// are not written in one of YAML's own notations.
func quoteValues(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		key, value, ok := strings.Cut(line, ": ")
		value = strings.TrimSpace(value)
		if ok && isPlainKey(key) && value != "" && strings.IndexByte("\"'|>&*!-#", value[0]) < 0 && !strings.Contains(value, " #") {
			line = key + ": '" + strings.ReplaceAll(value, "'", "''") + "'"
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func isPlainKey(s string) bool {
	s = strings.TrimLeft(s, " ")
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}
