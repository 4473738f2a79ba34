package credential

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

// maxComplaint bounds what is kept of a command's standard error, in bytes.
const maxComplaint = 4096

// runCommand runs a program for at most limit and returns the token that it prints.
func runCommand(ctx context.Context, argv []string, limit time.Duration) (Secret, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, complaint := &head{max: maxToken + 2}, &tail{max: maxComplaint}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well, and left something that keeps its output open
	}
	if ctx.Err() != nil {
		return Secret{}, context.Cause(ctx)
	}
	text := strings.TrimSpace(out.String())
	if err != nil {
		return Secret{}, complaint.explain(err, text)
	}
	return checkToken(text)
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
