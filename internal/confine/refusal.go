package confine

import (
	"fmt"
)

// A Refusal says why a profile cannot be enforced as things are.
type Refusal struct {
	reason string
	// Status is the exit status that tells it.
	Status int
}

func (r *Refusal) Error() string { return "cannot enforce the sandbox: " + r.reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...), 1} }
