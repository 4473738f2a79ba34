package containerd

import (
	"io"

	"github.com/containerd/log"
	"github.com/rs/zerolog"
	"github.com/sirupsen/logrus"
)

// Quiet keeps containerd's library from logging, in a program that uses a client
// without a Server.
func Quiet() { quiet(zerolog.Nop(), false) }

// quiet takes over containerd's log, which is global to the process. Its
// warnings are not ours: among them are some at every start and at every end of
// a container that mean nothing. So they all are for debugging.
func quiet(to zerolog.Logger, debug bool) {
	level := logrus.WarnLevel
	if debug {
		// Not logrus.DebugLevel: the shims would open debug sockets.
		level = logrus.InfoLevel
	}
	hooks := logrus.LevelHooks{}
	hooks.Add(logHook{to})
	log.L.Logger.SetOutput(io.Discard)
	log.L.Logger.SetLevel(level)
	log.L.Logger.ReplaceHooks(hooks)
}

// logHook passes messages on.
type logHook struct{ to zerolog.Logger }

func (h logHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h logHook) Fire(e *logrus.Entry) error {
	h.to.Debug().
		Str("component", "containerd").
		Str("severity", e.Level.String()).
		Fields(map[string]any(e.Data)).
		Msg(e.Message)
	return nil
}
