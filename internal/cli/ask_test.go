package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/control"
)

// What keeps a command from reaching the server is said with what helps.
func TestAServerOutOfReach(t *testing.T) {
	common := Common{Root: t.TempDir()}
	for err, want := range map[error]string{
		control.ErrNoDaemon:      "no exec-server is running for root " + common.Root + ": start one, or choose the root of another with --root or --config",
		context.DeadlineExceeded: "the exec-server of root " + common.Root + " does not answer",
	} {
		if got := common.ask(func(string) error { return err }); got.Error() != want {
			t.Errorf("%v: it says %q; expected %q", err, got, want)
		}
	}
}

func TestAMistypedFlagIsNoCommand(t *testing.T) {
	for args, want := range map[string]string{
		"run --rofile large -- ls": "unknown flag --rofile",
		"run -x ls":                "unknown flag -x",
		"run --":                   "no command given",
		"env policy":               `expected "env policy <name>" (see`,
		"run --network x -- ls":    `--network must be one of "none","rules","open" but got "x"`,
	} {
		if _, err := exec(t, exitUsage, "", append([]string{"--root", t.TempDir()}, strings.Fields(args)...)...); !strings.Contains(err, want) {
			t.Errorf("%s: it says %q; expected %q", args, err, want)
		}
	}
}
