package agent

import (
	"github.com/exec-server/exec-server/internal/discover"
	"github.com/exec-server/exec-server/internal/proto"
)

func decodeDiscover(v proto.Value) (operation, error) {
	roots, err := discover.Decode(v)
	return operation{do: func(*conn) (proto.Result, error) {
		return discover.Roots(roots, confined)
	}}, err
}

// confined runs f as a sandbox allows. What cannot be enforced is refused.
func confined(sandbox *proto.Sandbox, f func()) error {
	if sandbox != nil && sandbox.RestrictsFiles {
		return proto.Invalid("per-command sandboxing of file operations is not available on this executor")
	}
	f()
	return nil
}
