package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
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
	// maxComplaint bounds what is kept of a command's standard error, in bytes.
	maxComplaint = 4096
)

// command is the token that a program prints.
type command struct {
	lasting
	argv []string
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
	return &command{argv: argv, busy: make(chan struct{}, 1)}, nil
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
	stale := c.token == "" || c.refused || c.err != nil || age >= commandKeep
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
	if c.err != nil && (c.token == "" || c.refused) {
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

func (c *command) run(ctx context.Context) (Secret, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("it took more than %v", commandTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, complaint := &head{max: maxToken + 2}, &tail{max: maxComplaint}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	text := strings.TrimSpace(out.String())
	if err != nil {
		return "", complaint.explain(err, text)
	}
	return checkToken(text)
}

func (c *command) Allows(base *url.URL) error { return secureRule(base) }
func (c *command) Scoped() bool               { return false }

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	max int
}

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.Buffer.Write(p[:min(len(p), h.max-h.Len())])
	return len(p), nil
}

// tail keeps the end of what is written to it.
type tail struct {
	kept []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.max):]...)
	t.kept = t.kept[max(0, len(t.kept)-t.max):]
	return len(p), nil
}

// explain adds the last line that was written to an error, without secret and
// without what would not print.
func (t *tail) explain(err error, secret string) error {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "?"))
	line := text[strings.LastIndexByte(text, '\n')+1:]
	for word := range strings.FieldsSeq(secret) {
		line = strings.ReplaceAll(line, word, redacted)
	}
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, line)
	if line == "" {
		return err
	}
	return fmt.Errorf("%w: %.500s", err, line)
}
