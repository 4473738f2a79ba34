package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	// commandTime bounds a run of the command.
	commandTime = 30 * time.Second
	// commandKeep is how long a token of the command is used before it is asked
	// again. What prints tokens that expire renews them some minutes before.
	commandKeep = 5 * time.Minute
	// commandPause is the least time between two runs, whatever the registry says.
	commandPause = time.Minute
)

// command is the token that a program prints.
type command struct {
	lasting
	argv []string
	run  func(context.Context) (Secret, error)
	// busy holds one value while a goroutine looks at the fields below. It may run
	// the command meanwhile, so that others have to be able to give up.
	busy    chan struct{}
	token   Secret
	err     error     // of the last run
	ran     time.Time // the last run
	refused bool      // the token, by the registry
}

// Command is the token that a program prints, with blanks around it or without,
// at most 16384 bytes. The program has the environment of this process, no input,
// and 30 s. It runs when a token is first needed, again after 5 minutes, and when
// the registry has refused the token, but not twice within a minute. If it fails,
// a token that was not refused is used on. It goes where Bearer goes.
func Command(argv []string) (Source, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("token command: it is empty")
	}
	c := &command{argv: argv, busy: make(chan struct{}, 1)}
	c.run = func(ctx context.Context) (Secret, error) { return runCommand(ctx, argv, commandTime) }
	return c, nil
}

func (c *command) Authorize(ctx context.Context, r *http.Request, _ []byte) error {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.renew(ctx); err != nil {
		return err
	}
	c.token.bearer(r)
	return nil
}

// renew runs the command if it is time to. The caller holds busy.
func (c *command) renew(ctx context.Context) error {
	age := time.Since(c.ran)
	stale := c.token.text == nil || c.refused || c.err != nil || age >= commandKeep
	if stale && (c.ran.IsZero() || age >= commandPause) {
		token, err := c.run(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.ran, c.err = time.Now(), err
		if err == nil {
			c.token, c.refused = token, false
		}
	}
	if c.err != nil && (c.token.text == nil || c.refused) {
		return &unavailable{fmt.Errorf("token command %s: %w", c.argv[0], c.err)}
	}
	return nil
}

// Refused implements Refresher.
func (c *command) Refused() {
	c.busy <- struct{}{}
	c.refused = true
	<-c.busy
}

func (c *command) Allows(base *url.URL) error { return secureRule(base) }

// Place implements Placed. The arguments may be secret.
func (c *command) Place() string { return "the command " + c.argv[0] }
func (c *command) Scoped() bool  { return false }
