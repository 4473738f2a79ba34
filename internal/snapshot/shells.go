package snapshot

import (
	"fmt"
	"strings"

	"github.com/exec-server/exec-server/internal/process"
)

// shell is what is particular to a kind of shell.
type shell struct {
	// dump is the script with which a login shell prints its state. It ends with
	// an environment.
	dump string
	// restore makes the script that brings the state back from the fields of the
	// dump. It is not ok if they are not what the shell prints.
	restore func(fields []string, env map[string]string) (script string, aliases, ok bool)
	// argv starts the shell with its state: argv is that of the login shell. It
	// may change the environment.
	argv func(argv []string, env map[string]string, aliases bool) []string
	// unusual are variables with which the shell behaves in another way.
	unusual []string
}

// shells are by the names that harnesses know.
var shells = map[string]*shell{"bash": bash, "zsh": zsh, "sh": sh}

// stateFile is how a shell opens its state, which it has closed at the end of
// the first line.
var (
	stateFile = fmt.Sprintf("/proc/self/fd/%d", process.StateFD)
	firstLine = fmt.Sprintf("exec %d<&-\n", process.StateFD)
)

// sourcing starts a shell that reads its state at the beginning of the script.
// The script begins on the same line, so that the numbers of lines in messages
// are right, unless there are aliases: those count from the next line on.
func sourcing(argv []string, aliases bool, flags ...string) []string {
	end := ";"
	if aliases {
		end = "\n"
	}
	out := append([]string{argv[0]}, flags...)
	out = append(out, "-c", ". "+stateFile+end+argv[2])
	return append(out, argv[3:]...)
}

// switches lists the names of on and off options in a shell's own listing.
func switches(list, on, off string) (ons, offs []string) {
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, on); ok {
			ons = append(ons, strings.TrimSpace(name))
		} else if name, ok := strings.CutPrefix(line, off); ok {
			offs = append(offs, strings.TrimSpace(name))
		}
	}
	return ons, offs
}
