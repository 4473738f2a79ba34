package containerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// environments are the directories of what lasts of each environment: its
// workspace, and the ids that own the files in it.
type environments struct {
	root string
	mu   sync.Mutex // serialises the choice of ids
}

// record is what env.json holds.
type record struct {
	Version   int    `json:"version"`
	Name      string `json:"name"`
	IDBase    uint32 `json:"idBase"`
	Ephemeral bool   `json:"ephemeral,omitempty"`
}

// environment is one environment's directory.
type environment struct {
	record
	dir   string
	fresh bool // whether it was made just now
}

// ids are the host's ids that the container's are mapped to.
func (e environment) ids() idRange { return idRange{e.IDBase} }

// workspace is the directory that is /workspace in the container.
func (e environment) workspace() string { return filepath.Join(e.dir, "workspace") }

// dir is the directory of one environment.
func (e *environments) dir(name string) string { return filepath.Join(e.root, name) }

// openEnvironments checks that the records there can be read.
func openEnvironments(root string) (*environments, error) {
	e := &environments{root: root}
	if _, err := e.list(); err != nil {
		return nil, err
	}
	return e, nil
}

// list returns the record of every environment. One that a crash left without a
// record is not in it.
func (e *environments) list() ([]record, error) {
	entries, err := os.ReadDir(e.root)
	if err != nil {
		return nil, fmt.Errorf("list environments: %w", err)
	}
	var found []record
	for _, entry := range entries {
		if !entry.IsDir() {
			continue // nothing of ours
		}
		r, err := e.read(entry.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// read returns the record of one environment.
func (e *environments) read(name string) (record, error) {
	var r record
	text, err := os.ReadFile(filepath.Join(e.root, name, "env.json"))
	if err != nil {
		return r, fmt.Errorf("read environment %s: %w", name, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read environment %s: env.json: %w", name, err)
	}
	if r.Version != 1 || r.Name != name || !(idRange{r.IDBase}).valid() {
		return r, fmt.Errorf("read environment %s: env.json is not its record", name)
	}
	return r, nil
}

// open returns the environment's directory, with a workspace in it, and makes
// it if there is none.
func (e *environments) open(name string, ephemeral bool) (_ environment, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	env := environment{dir: e.dir(name)}
	env.record, err = e.read(name)
	if errors.Is(err, os.ErrNotExist) {
		env.record, env.fresh, err = e.create(name, ephemeral)
	}
	if err == nil && env.Ephemeral != ephemeral {
		return env, fmt.Errorf("the environment exists, and its workspace is kept: %t, not %t", !env.Ephemeral, !ephemeral)
	}
	if err == nil {
		err = makeOwned(env.workspace(), 0o755, env.ids())
	}
	if err != nil && env.fresh {
		err = errors.Join(err, e.remove(name))
	}
	return env, err
}

// create writes the record of a new environment, and tells whether it has made
// the directory for it. The caller holds e.mu.
func (e *environments) create(name string, ephemeral bool) (r record, made bool, err error) {
	others, err := e.list()
	if err != nil {
		return r, false, err
	}
	ids, err := freeRange(e.root, others)
	if err != nil {
		return r, false, err
	}
	r = record{Version: 1, Name: name, IDBase: ids.base, Ephemeral: ephemeral}
	text, err := json.Marshal(r)
	if err != nil {
		return r, false, err
	}
	dir := e.dir(name)
	// A crash may have left a directory without a record; an operator may have
	// put one there.
	err = os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return r, false, err
	}
	return r, err == nil, writeFile(filepath.Join(dir, "env.json"), append(text, '\n'))
}

// remove removes an environment with its workspace. It may be gone already.
func (e *environments) remove(name string) error {
	return removeTree(e.dir(name))
}
