package snapshot

import (
	"slices"
	"strings"
)

// sh is any shell of POSIX. It can tell its functions only if it has a typeset,
// which not all have, and never its variables that are not exported.
var sh = &shell{
	dump: `(
printf '\0%s\0' MARK
set +o
set +e +f +u +x
printf '\0'
(typeset -f) 2>/dev/null
printf '\0'
alias
` + environment,
	restore: restoreSh,
	argv: func(argv []string, _ map[string]string, aliases bool) []string {
		return sourcing(argv, aliases)
	},
	unusual: []string{"SHELLOPTS", "BASHOPTS"},
}

func restoreSh(fields []string, _ map[string]string) (script string, aliases, ok bool) {
	if len(fields) != 3 {
		return "", false, false
	}
	options, functions, list := fields[0], fields[1], fields[2]
	var b strings.Builder
	b.WriteString(firstLine)
	b.WriteString(functions)
	for _, a := range quotedLines(list) {
		if !strings.HasPrefix(a, "alias ") {
			a = "alias " + a
		}
		b.WriteString(a + "\n")
		aliases = true
	}
	skip := func(name string) bool {
		return slices.Contains([]string{"emacs", "vi", "interactive", "stdin", "monitor", "noexec", "onecmd", "privileged", "history", "histexpand"}, name)
	}
	ons, _ := switches(options, "set -o ", "set +o ")
	if ons = slices.DeleteFunc(ons, skip); len(ons) > 0 {
		b.WriteString("set -o " + strings.Join(ons, " -o ") + "\n")
	}
	return b.String(), aliases, true
}

// quotedLines splits at the ends of lines that are not within quotes.
func quotedLines(text string) (lines []string) {
	var within byte
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && within != '\'':
			i++
		case within != 0:
			if c == within {
				within = 0
			}
		case c == '\'' || c == '"':
			within = c
		case c == '\n':
			if i > start {
				lines = append(lines, text[start:i])
			}
			start = i + 1
		}
	}
	if start < len(text) {
		lines = append(lines, text[start:])
	}
	return lines
}
