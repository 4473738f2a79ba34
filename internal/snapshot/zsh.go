package snapshot

import (
	"slices"
	"strings"
)

// zsh needs no more than its builtins here. Like the reference it has .zshrc read
// as well. It reads a whole script before it begins with it, so that aliases do
// not count in the script itself.
var zsh = &shell{
	dump: `[ -n "${ZSH_VERSION-}" ] || exit 1
if [ -r "${ZDOTDIR:-${HOME-}}/.zshrc" ]; then . "${ZDOTDIR:-$HOME}/.zshrc"; fi
(
builtin printf '\0%s\0' MARK
if [[ -o ksh_option_print ]]; then builtin printf 'kshoptionprint on\n'; fi
builtin setopt ksh_option_print
builtin setopt
builtin printf '\0'
builtin emulate -R zsh
builtin setopt ksh_option_print
builtin setopt
builtin unsetopt ksh_option_print
builtin printf '\0'
builtin typeset -f
builtin printf '\0'
builtin alias -L
builtin printf '\0'
builtin typeset -p fpath
for MARKname in ${(f)"$(builtin typeset +)"}; do
	MARKname=${MARKname##* }
	if [[ ${(tP)MARKname} != *(special|export)* ]]; then
		builtin printf '\0'
		builtin typeset -p -- $MARKname 2>/dev/null
	fi
done
` + environment,
	restore: restoreZsh,
	argv: func(argv []string, _ map[string]string, _ bool) []string {
		return sourcing(argv, false, "-f")
	},
}

func restoreZsh(fields []string, _ map[string]string) (script string, aliases, ok bool) {
	if len(fields) < 5 {
		return "", false, false
	}
	var b strings.Builder
	b.WriteString(firstLine)
	b.WriteString(fields[2]) // functions, while options and aliases are the usual ones
	b.WriteString(fields[3])
	for _, variable := range fields[4:] {
		name, _, _ := strings.Cut(variable, "=")
		name = name[strings.LastIndexByte(name, ' ')+1:]
		switch {
		case strings.TrimSpace(name) == "" || len(name) > 32 && strings.HasSuffix(name, "name"):
		case name == "fpath": // there from the beginning
			b.WriteString(variable)
		default: // a command's own environment wins
			b.WriteString("(( ${+" + strings.TrimSpace(name) + "} )) || " + variable)
		}
	}
	b.WriteString(zshOptions(fields[0], fields[1]))
	return b.String(), false, true
}

// zshFixed are options that cannot be changed, or must not be for a script.
var zshFixed = []string{"exec", "interactive", "login", "monitor", "privileged", "restricted", "shinstdin", "singlecommand", "zle", "rcs"}

// zshOptions sets the options that are not what they are by default. Both lists
// say "on" and "off".
func zshOptions(now, usual string) string {
	options := func(list string) (names []string, on map[string]bool) {
		on = make(map[string]bool)
		for line := range strings.Lines(list) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name != "" && name != "kshoptionprint" {
				names, on[name] = append(names, name), strings.TrimSpace(value) == "on"
			}
		}
		return names, on
	}
	names, is := options(now)
	_, was := options(usual)
	ons, offs := []string{"rcs"}, []string(nil)
	for _, name := range names {
		switch {
		case is[name] == was[name] || slices.Contains(zshFixed, strings.TrimPrefix(name, "no")):
		case is[name]:
			ons = append(ons, name)
		default:
			offs = append(offs, name)
		}
	}
	if strings.Count(now, "kshoptionprint") > 1 { // once is the dump's own
		ons = append(ons, "kshoptionprint")
	}
	text := ""
	if len(offs) > 0 {
		text = "unsetopt " + strings.Join(offs, " ") + "\n"
	}
	return text + "setopt " + strings.Join(ons, " ") + "\n"
}
