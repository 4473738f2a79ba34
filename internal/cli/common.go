package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/exec-server/exec-server/internal/config"
)

// Common flags of all commands. They win over the configuration file.
type Common struct {
	ConfigFile        string `name:"config" placeholder:"FILE" help:"Configuration file (TOML); 'exec-server config' prints one."`
	Root              string `placeholder:"DIR" help:"Directory for all state that is kept (/var/lib/exec-server)."`
	Runtime           string `enum:",containerd,host" default:"" placeholder:"containerd|host" help:"containerd: a container for each environment; host: no isolation, this machine."`
	ContainerdAddress string `placeholder:"SOCKET" help:"Use a running containerd (1.7 or later) instead of the one inside."`
	LogLevel          string `enum:",debug,info,warn,error" default:"" placeholder:"debug|info|warn|error" help:"Least severe level to log."`
}

// load reads the configuration file, if there is one, and lays the flags over it.
func (c *Common) load() (config.Config, error) {
	cfg := config.Default()
	if c.ConfigFile != "" {
		var err error
		if cfg, err = config.Load(c.ConfigFile); errors.Is(err, fs.ErrNotExist) && strings.Contains(c.ConfigFile, "=") {
			return cfg, usageError("--config names this server's own file; overrides for codex are written -c KEY=VALUE, and have no effect here")
		} else if err != nil {
			return cfg, err
		}
	}
	override(&cfg.Root, c.Root)
	override(&cfg.Runtime, c.Runtime)
	override(&cfg.Containerd.Address, c.ContainerdAddress)
	override(&cfg.Log.Level, c.LogLevel)
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return cfg, fmt.Errorf("root %s: %w", cfg.Root, err)
	}
	cfg.Root = root
	return cfg, nil
}

func override(key *string, flag string) {
	if flag != "" {
		*key = flag
	}
}

// stateDir holds sockets and what else must not outlive the machine's run.
// Socket paths are short there, however long the root's is.
func stateDir(root string) string { return "/run/exec-server/" + instance(root) }

// instance tells the servers of different roots apart, in names that are shared
// by the whole machine.
func instance(root string) string {
	sum := sha256.Sum256([]byte(root))
	return fmt.Sprintf("%x", sum[:6])
}

func newLogger(cfg config.Log, w io.Writer) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(cfg.Level)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("log level: %w", err)
	}
	f, isFile := w.(*os.File)
	if cfg.Format == "text" || cfg.Format == "auto" && isFile && term.IsTerminal(int(f.Fd())) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !isFile || !term.IsTerminal(int(f.Fd()))}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}
