package snapshot

import (
	"fmt"
	"slices"
	"strings"
)

// bash reads the file that BASH_ENV names before a script, so that the script
// itself stays as it is. Like the reference it has ~/.bashrc read as well, which
// most start-up files do anyway.
var bash = &shell{
	dump: `[ -n "${BASH_VERSION-}" ] || exit 1
if [ -z "${BASH_ENV-}" ] && [ -r "${HOME-}/.bashrc" ]; then . "$HOME/.bashrc"; fi
(
builtin trap - DEBUG ERR RETURN EXIT
builtin printf '\0%s\0' MARK
builtin shopt -p
builtin printf '\0'
builtin set +o
builtin set +efux
builtin shopt -u failglob nullglob expand_aliases
builtin printf '\0'
builtin declare -p IFS 2>/dev/null
IFS=$' \t\n'
builtin printf '\0'
builtin declare -f
builtin printf '\0'
builtin declare -F
builtin printf '\0'
builtin alias -p
for MARKname in $(builtin compgen -v); do
	builtin printf '\0'
	builtin declare -p "$MARKname" 2>/dev/null
done
` + environment,
	restore: restoreBash,
	argv: func(argv []string, env map[string]string, _ bool) []string {
		env["BASH_ENV"] = stateFile
		return append([]string{argv[0], "-c"}, argv[2:]...)
	},
	unusual: []string{"BASH_ENV", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT"},
}

func restoreBash(fields []string, env map[string]string) (script string, aliases, ok bool) {
	if len(fields) < 6 { // and the variables behind
		return "", false, false
	}
	var b strings.Builder
	b.WriteString(firstLine)
	if value, has := env["BASH_ENV"]; has {
		b.WriteString("export BASH_ENV=" + quote(value) + "\n")
	} else {
		b.WriteString("unset BASH_ENV\n")
	}
	ons, offs := switches(fields[0], "shopt -s ", "shopt -u ")
	fixed := func(name string) bool {
		return name == "login_shell" || name == "restricted_shell" || strings.HasPrefix(name, "compat")
	}
	for flag, names := range map[string][]string{"-s ": ons, "-u ": offs} {
		if names = slices.DeleteFunc(names, fixed); len(names) > 0 {
			b.WriteString("shopt " + flag + strings.Join(names, " ") + "\n")
		}
	}
	b.WriteString(fields[3]) // functions, while there are no aliases that could change them
	for line := range strings.Lines(fields[4]) {
		if !strings.HasPrefix(line, "declare -f ") { // has attributes
			b.WriteString(line)
		}
	}
	b.WriteString(fields[5])
	b.WriteString(fields[2])
	for _, variable := range fields[6:] {
		b.WriteString(restoreVariable(variable))
	}
	// Last, since they may be for stopping at errors or for tracing.
	b.WriteString(bashOptions(fields[1]))
	return b.String(), true, true
}

func bashOptions(list string) string {
	skip := func(name string) bool {
		return slices.Contains([]string{"emacs", "vi", "history", "histexpand", "monitor", "noexec", "onecmd", "privileged"}, name)
	}
	ons, offs := switches(list, "set -o ", "set +o ")
	line := "set"
	for _, name := range slices.DeleteFunc(offs, skip) {
		line += " +o " + name
	}
	for _, name := range slices.DeleteFunc(ons, skip) {
		line += " -o " + name
	}
	if line == "set" {
		return ""
	}
	return line + "\n"
}

// restoreVariable restores what "declare -p" has printed, unless the variable is
// in the environment or is set by the shell itself.
func restoreVariable(text string) string {
	rest, ok := strings.CutPrefix(text, "declare -")
	flags, rest, _ := strings.Cut(rest, " ")
	name, _, _ := strings.Cut(rest, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.Contains(flags, "x") || bashOwn(name) {
		return ""
	}
	if name == "PS4" { // there from the beginning
		return text
	}
	// A command's own environment wins.
	return fmt.Sprintf("[[ ${%s+x} ]] || %s", name, text)
}

// bashOwn says whether bash itself sets a variable.
func bashOwn(name string) bool {
	for _, prefix := range []string{"BASH", "COMP_", "READLINE_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return len(name) > 32 && strings.HasSuffix(name, "name") || // of the dump
		slices.Contains([]string{
			"_", "COLUMNS", "COMPREPLY", "COPROC", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS",
			"HISTCMD", "HOSTNAME", "HOSTTYPE", "IFS", "LINENO", "LINES", "MACHTYPE", "MAILCHECK", "MAPFILE", "OLDPWD", "OPTARG", "OPTERR",
			"OPTIND", "OSTYPE", "PIPESTATUS", "PPID", "PWD", "RANDOM", "REPLY", "SECONDS", "SHELL", "SHELLOPTS", "SHLVL",
			"SRANDOM", "TERM", "UID",
		}, name)
}
