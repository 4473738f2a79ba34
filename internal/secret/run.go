package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// runCommand runs a program for at most limit and returns the secret that it prints.
// What it writes to standard error may have the secret in it, and goes nowhere.
func runCommand(ctx context.Context, argv []string, check func(string) (Secret, error), limit time.Duration) (Secret, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &head{max: Max + 2}
	cmd.Stdout = out
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well, and left something that keeps its output open
	}
	if ctx.Err() != nil {
		return Secret{}, context.Cause(ctx)
	}
	if err != nil {
		return Secret{}, err
	}
	text := strings.TrimSpace(out.String())
	if text == "" {
		return Secret{}, errors.New("it printed nothing")
	}
	return check(text)
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	max int
}

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.Buffer.Write(p[:min(len(p), h.max-h.Len())])
	return len(p), nil
}
