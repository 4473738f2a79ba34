// Package snapshot spares a login shell its start-up files: it takes the state
// that they leave behind once, and starts later commands with that state in a
// shell that is no login shell.
//
// The state is a script in sealed memory, which a command can neither change nor
// see once its shell has started, and a set of environment variables. Whatever
// is unusual, or goes wrong, is a reason to have no snapshot and never an error:
// then the command gets the login shell that it asked for.
package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/exec-server/exec-server/internal/process"
)

// Wish is what process/start asks for in its member shellSnapshot.
type Wish struct {
	Scope, Name, Path string
	// Policy is the environment policy of the command, nil if it has none.
	Policy *process.EnvPolicy
}

// Runner runs a command that no harness knows of, and returns what it printed. It
// is not ok if the command failed or was cancelled.
type Runner func(spec process.Spec, cancel <-chan struct{}) (stdout, stderr []byte, ok bool)

// suits says whether a snapshot can stand in for the login shell of a command.
func (w *Wish) suits(spec *process.Spec) bool {
	kind := shells[w.Name]
	return kind != nil && path.IsAbs(w.Path) && !spec.HasArg0 &&
		len(spec.Argv) >= 3 && spec.Argv[0] == w.Path && spec.Argv[1] == "-lc" && !strings.HasPrefix(spec.Argv[2], "-") &&
		!slices.ContainsFunc(kind.unusual, func(name string) bool { _, has := spec.Env[name]; return has })
}

// key tells snapshots apart. Start-up files may do something else in another
// directory or home.
func (w *Wish) key(spec *process.Spec) string {
	policy := ""
	if w.Policy != nil {
		policy = fmt.Sprintf("%#v", *w.Policy)
	}
	return fmt.Sprintf("%q", []string{w.Scope, w.Name, w.Path, policy, spec.Cwd, spec.Env["HOME"], spec.Env["ZDOTDIR"]})
}

// state is a snapshot.
type state struct {
	shared
	set     map[string]string // variables that the start-up files have set
	unset   []string          // and those that they have taken away
	aliases bool              // there are some, which count from the next line on
}

// take runs a login shell to its end and keeps its state. It is nil if that
// cannot be done.
func (w *Wish) take(spec *process.Spec, run Runner, cancel <-chan struct{}) *state {
	kind, mark := shells[w.Name], newMark()
	probe := *spec
	probe.Argv = []string{w.Path, "-lc", strings.ReplaceAll(kind.dump, "MARK", mark)}
	probe.TTY, probe.PipeStdin = false, false
	probe.Env = maps.Clone(spec.Env)
	delete(probe.Env, "CODEX_TOOL_CALL_ID") // is one command's
	out, _, ok := run(probe, cancel)
	if !ok {
		return nil
	}
	fields, env, ok := parseDump(string(out), mark)
	if !ok {
		return nil
	}
	script, aliases, ok := kind.restore(fields, env)
	if !ok || len(script) > maxScript {
		return nil
	}
	s := &state{aliases: aliases}
	s.compare(probe.Env, env)
	if s.file = sealed(script); s.file == nil {
		return nil
	}
	if !s.works(w, probe, run, cancel, mark) {
		s.end()
		return nil
	}
	return s
}

// works tries the state out: the shell has to read it, without a word, and must
// not keep the descriptor.
func (s *state) works(w *Wish, probe process.Spec, run Runner, cancel <-chan struct{}, mark string) bool {
	probe.Argv = []string{w.Path, "-lc", fmt.Sprintf("if { true >&%d; } 2>/dev/null; then :; else printf %%s %s; fi", process.StateFD, mark)}
	s.apply(w, &probe, func(string) bool { return false })
	stdout, stderr, ok := run(probe, cancel)
	return ok && string(stdout) == mark && len(stderr) == 0
}

// apply makes a command start with the state. Variables that are pinned stay as
// they are.
func (s *state) apply(w *Wish, spec *process.Spec, pinned func(name string) bool) {
	for name, value := range s.set {
		if !pinned(name) {
			spec.Env[name] = value
		}
	}
	for _, name := range s.unset {
		if !pinned(name) {
			delete(spec.Env, name)
		}
	}
	spec.State = s.file
	spec.Argv = shells[w.Name].argv(spec.Argv, spec.Env, s.aliases)
}

// newMark is a word that no start-up file prints.
func newMark() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)                // never fails
	return "m" + hex.EncodeToString(b) // a name for variables, too
}

// ownNames are variables that every shell sets for itself.
var ownNames = []string{"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV"}

// compare notes how the start-up files have changed the environment.
func (s *state) compare(before, after map[string]string) {
	s.set = make(map[string]string)
	for name, value := range after {
		old, had := before[name]
		if (!had || old != value) && !slices.Contains(ownNames, name) && !strings.HasPrefix(name, "BASH_FUNC_") {
			s.set[name] = value
		}
	}
	for name := range before {
		if _, has := after[name]; !has && !slices.Contains(ownNames, name) && !strings.HasPrefix(name, "BASH_FUNC_") {
			s.unset = append(s.unset, name)
		}
	}
}
