package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
)

// Secrets reads the secrets of credentials, for all environments. Its zero value is
// ready, and it may be used from several goroutines.
type Secrets struct {
	mu sync.Mutex
	// mu guards commands, by their programs and arguments. Those that no policy has any
	// more stay: policies are root's, and few.
	commands map[string]*secret.Command
}

// Get reads a secret: a file, at most 16384 bytes, and a variable of the daemon each
// time, a program's output as secret.Command has it. Blanks around it are dropped.
// Errors have nothing of the secret.
func (s *Secrets) Get(ctx context.Context, c *rules.Credential) (secret.Secret, error) {
	text, err := s.get(ctx, c)
	if err != nil {
		return secret.Secret{}, fmt.Errorf("read a credential: %w", err)
	}
	return text, nil
}

func (s *Secrets) get(ctx context.Context, c *rules.Credential) (secret.Secret, error) {
	switch {
	case c.SecretFile != "":
		b, err := secret.File(c.SecretFile, secret.Max)
		if err != nil {
			return secret.Secret{}, err
		}
		return line(c.SecretFile, string(b))
	case c.SecretEnv != "":
		text, set := os.LookupEnv(c.SecretEnv)
		if !set {
			return secret.Secret{}, fmt.Errorf("the daemon has no variable %s", c.SecretEnv)
		}
		return line("the variable "+c.SecretEnv, text)
	case len(c.SecretCommand) > 0:
		text, err := s.command(c.SecretCommand).Get(ctx)
		if err != nil {
			return secret.Secret{}, fmt.Errorf("the command %s: %w", c.SecretCommand[0], err)
		}
		return text, nil
	}
	return secret.Secret{}, errors.New("it says no place")
}

func line(place, text string) (secret.Secret, error) {
	s, err := secret.Line(strings.TrimSpace(text))
	if err != nil {
		return secret.Secret{}, fmt.Errorf("%s: %w", place, err)
	}
	return s, nil
}

// command is the one of these arguments, which may be secret themselves.
func (s *Secrets) command(argv []string) *secret.Command {
	key := strings.Join(argv, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commands[key]
	if c == nil {
		if s.commands == nil {
			s.commands = map[string]*secret.Command{}
		}
		c = secret.NewCommand(argv, secret.Line)
		s.commands[key] = c
	}
	return c
}
