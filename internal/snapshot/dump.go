package snapshot

import "strings"

// parseDump takes apart what a dump has printed: behind a mark the fields that
// are the shell's own, and behind another one its environment, until a third.
// Each is between zeros.
func parseDump(out, mark string) (fields []string, env map[string]string, ok bool) {
	// Start-up files may have printed anything before and after.
	_, out, ok = strings.Cut(out, "\x00"+mark+"\x00")
	if !ok {
		return nil, nil, false
	}
	own, rest, ok := strings.Cut(out, "\x00"+mark+"\x00")
	if !ok {
		return nil, nil, false
	}
	list, _, ok := strings.Cut(rest, "\x00"+mark+"\x00")
	if !ok {
		return nil, nil, false
	}
	env = make(map[string]string)
	for pair := range strings.SplitSeq(list, "\x00") {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			env[name] = value
		}
	}
	return strings.Split(own, "\x00"), env, true
}

// environment prints the environment and the last two marks.
const environment = `
printf '\0%s\0' MARK
command env -0 || command -p env -0 || exit 1
printf '\0%s\0' MARK
)
`

// quote writes a word so that every shell reads it as it is.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
