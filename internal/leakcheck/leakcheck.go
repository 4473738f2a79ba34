// Package leakcheck finds what a piece of work has left on a machine: mounts,
// network namespaces, cgroups, processes, sockets, files. Tests take a Snapshot
// before and after, and compare the two with Diff.
//
// It is for tests that run as root; it sees what /proc shows to its process.
package leakcheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Scope says what to look at. Other work on the machine goes on meanwhile, so
// that looking at everything would find what is nobody's leak.
type Scope struct {
	// Paths are absolute paths; mounts, sockets and files at or below them count.
	Paths []string
	// Depth is how many levels of files below each path count; 0 is one.
	Depth int
	// Cgroup is the beginning of the names of the cgroups that count, with all
	// below them, in every hierarchy. "" is none.
	Cgroup string
	// Processes are parts of command lines or of executables' paths. Processes
	// that have any of them count, except the caller's own, and so do the
	// caller's own children that are zombies.
	Processes []string
}

// State is what was there, by kind. The keys of Kinds are "mount", "network
// namespace", "cgroup", "process", "socket" and "file".
type State struct {
	Kinds map[string][]string
}

// Count is how many things of a kind there were.
func (s State) Count(kind string) int { return len(s.Kinds[kind]) }

// Snapshot looks at the machine.
func (s Scope) Snapshot() (State, error) {
	state := State{Kinds: map[string][]string{}}
	var errs []error
	for kind, look := range map[string]func() ([]string, error){
		"mount":             s.mounts,
		"network namespace": s.namespaces,
		"cgroup":            s.cgroups,
		"process":           s.processes,
		"socket":            s.sockets,
		"file":              s.files,
	} {
		found, err := look()
		if err != nil {
			errs = append(errs, fmt.Errorf("look for a leaked %s: %w", kind, err))
		}
		slices.Sort(found)
		state.Kinds[kind] = slices.Compact(found)
	}
	return state, errors.Join(errs...)
}

// Diff lists what is only in one of the two, a line each: "+" for what is only
// in after, "-" for what is only in before. It is "" if they are the same.
func Diff(before, after State) string {
	var out strings.Builder
	kinds := slices.Collect(maps.Keys(before.Kinds))
	for kind := range after.Kinds {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		had, have := before.Kinds[kind], after.Kinds[kind]
		for _, item := range have {
			if !slices.Contains(had, item) {
				fmt.Fprintf(&out, "+ %s %s\n", kind, item)
			}
		}
		for _, item := range had {
			if !slices.Contains(have, item) {
				fmt.Fprintf(&out, "- %s %s\n", kind, item)
			}
		}
	}
	return out.String()
}

// below tells whether the path is one of the scope's or below it.
func (s Scope) below(path string) bool {
	return slices.ContainsFunc(s.Paths, func(p string) bool {
		return path == p || strings.HasPrefix(path, strings.TrimRight(p, "/")+"/")
	})
}
