package secret

import (
	"context"
	"time"
)

const (
	// commandTime bounds a run of the program.
	commandTime = 30 * time.Second
	// commandKeep is how long a secret of the program is used before it is asked
	// again. What prints tokens that expire renews them some minutes before.
	commandKeep = 5 * time.Minute
	// commandPause is the least time between two runs, whatever becomes of the secret,
	// and failurePause is it after a run that has failed: what was mended counts soon.
	commandPause = time.Minute
	failurePause = 5 * time.Second
)

// Command is the secret that a program prints, with blanks around it or without, at
// most Max bytes. The program has the environment of this process, no input, and
// 30 s. It runs when the secret is first needed, again after 5 minutes, and when the
// secret was refused, but not twice within a minute, or within 5 s of a failure. If it
// fails, a secret that was not refused is used on.
type Command struct {
	run func(context.Context) (Secret, error)
	// busy holds one value while a goroutine looks at the fields below. It may run
	// the program meanwhile, so that others have to be able to give up.
	busy    chan struct{}
	secret  Secret
	err     error     // of the last run
	ran     time.Time // the last run
	refused bool      // the secret, by whom it is for
}

// NewCommand is the Command of a program and its arguments; check makes the secret of
// what was printed.
func NewCommand(argv []string, check func(string) (Secret, error)) *Command {
	run := func(ctx context.Context) (Secret, error) { return runCommand(ctx, argv, check, commandTime) }
	return &Command{run: run, busy: make(chan struct{}, 1)}
}

// Get returns the secret. Its errors have nothing of what the program printed; they
// are ctx's if that ends.
func (c *Command) Get(ctx context.Context) (Secret, error) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	case <-ctx.Done():
		return Secret{}, context.Cause(ctx)
	}
	age := time.Since(c.ran)
	stale := c.secret.IsZero() || c.refused || c.err != nil || age >= commandKeep
	pause := commandPause
	if c.err != nil {
		pause = failurePause
	}
	if stale && (c.ran.IsZero() || age >= pause) {
		text, err := c.run(ctx)
		if ctx.Err() != nil {
			return Secret{}, context.Cause(ctx)
		}
		c.ran, c.err = time.Now(), err
		if err == nil {
			c.secret, c.refused = text, false
		}
	}
	if c.err != nil && (c.secret.IsZero() || c.refused) {
		return Secret{}, c.err
	}
	return c.secret, nil
}

// Refused tells that the secret is no longer good.
func (c *Command) Refused() {
	c.busy <- struct{}{}
	c.refused = true
	<-c.busy
}
