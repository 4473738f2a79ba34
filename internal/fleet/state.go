package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/exec-server/exec-server/internal/config"
)

// stateVersion is that of the state file's format.
const stateVersion = 1

// maxState bounds the state file, in bytes; beyond, it is another's.
const maxState = 16 << 20

// state is what the file holds. Keys for registries are not in it, only where they
// are found.
type state struct {
	Version      int                           `json:"version"`
	Environments map[string]config.Environment `json:"environments"`
}

// Kept reads the environments that an earlier daemon was given while it ran. That
// there are none is no error.
func Kept(path string) ([]Entry, error) {
	data, err := readState(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("kept environments: %w", err)
	}
	s, err := parseState(data)
	if err != nil {
		return nil, fmt.Errorf("kept environments: %s: %w; what was added is lost if it is removed", path, err)
	}
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(s.Environments)) {
		entries = append(entries, Entry{Name: name, Settings: s.Environments[name], Origin: Added})
	}
	return entries, nil
}

// readState reads the file, up to one byte more than it may have. Nothing but a
// regular file is waited for.
func readState(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxState+1))
}

func parseState(data []byte) (state, error) {
	if len(data) > maxState {
		return state{}, fmt.Errorf("it has more than %d bytes", maxState)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return state{}, err
	}
	if version.Version != stateVersion {
		return state{}, fmt.Errorf("version %d is not known to this program; it reads version %d", version.Version, stateVersion)
	}
	var s state
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return s, d.Decode(&s)
}

// save writes the environments that are kept down.
func (f *Fleet) save() error {
	if f.opts.State == "" {
		return nil
	}
	f.saving.Lock()
	defer f.saving.Unlock()
	s := state{Version: stateVersion, Environments: map[string]config.Environment{}}
	f.mu.Lock()
	for name, m := range f.members {
		if m.kept {
			s.Environments[name] = m.Settings
		}
	}
	f.mu.Unlock()
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = replace(f.opts.State, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the environments: %w", err)
	}
	return nil
}

// replace puts a file in the place of another as a whole, for its owner alone.
func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
