package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/exec-server/exec-server/internal/secret"
)

// command is the token that a program prints.
type command struct {
	lasting
	program string
	*secret.Command
}

// Command is the token that a program prints, as secret.Command has it. It goes where
// Bearer goes.
func Command(argv []string) (Source, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("token command: it is empty")
	}
	return &command{program: argv[0], Command: secret.NewCommand(argv, secret.Token)}, nil
}

func (c *command) Authorize(ctx context.Context, r *http.Request, _ []byte) error {
	token, err := c.Get(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &unavailable{fmt.Errorf("token command %s: %w", c.program, err)}
	}
	bearer(r, token)
	return nil
}

func (c *command) Allows(base *url.URL) error { return secureRule(base) }

// Place implements Placed. The arguments may be secret.
func (c *command) Place() string { return "the command " + c.program }
func (c *command) Scoped() bool  { return false }
