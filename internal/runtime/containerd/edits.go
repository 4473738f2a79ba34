package containerd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// editFile is the file with the policy of an environment's container, if that is
// not the one that it was made with.
type editFile string

// edit is what the file holds.
type edit struct {
	// Container is the one whose policy it is. It counts for no other.
	Container string       `json:"container"`
	Policy    rules.Policy `json:"policy"`
}

func editsIn(dir string) editFile { return editFile(filepath.Join(dir, "network.json")) }

func (f editFile) write(e edit) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return writeFile(string(f), append(text, '\n'))
}

// policy returns the policy of a container that was made with another. If it cannot
// be read, the one that the container was made with does not do: what was there may
// have been narrower.
func (f editFile) policy(container string, made rules.Policy) (rules.Policy, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return made, nil
	} else if err != nil {
		return rules.Policy{}, fmt.Errorf("read the edited policy: %w", err)
	}
	var e edit
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // which may be what narrows it
	if err := d.Decode(&e); err != nil {
		return rules.Policy{}, fmt.Errorf("read the edited policy: %s: %w", f, err)
	}
	switch e.Container {
	case container:
		return e.Policy, nil
	case "": // not written by us, for whichever container
		return rules.Policy{}, fmt.Errorf("read the edited policy: %s does not say whose it is", f)
	}
	return made, nil
}

// forgetNetwork removes what is written down of the network of an environment's
// container, in the environment's directory.
func forgetNetwork(dir string) error {
	var errs []error
	for _, path := range []string{string(editsIn(dir)), volumeIn(dir)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
