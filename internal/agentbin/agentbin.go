// Package agentbin carries the agent's binary inside the server's own. The build
// script puts it into bin/ before it builds the server; a server that was built
// without it works with --runtime host only.
package agentbin

import (
	"embed"
	"errors"
)

//go:embed all:bin
var files embed.FS

// ErrMissing says that the binary was built without an agent.
var ErrMissing = errors.New("this exec-server was built without its agent; build it with scripts/build")

// Agent is the agent's binary, a static executable.
func Agent() ([]byte, error) {
	data, err := files.ReadFile("bin/exec-agent")
	if err != nil {
		return nil, ErrMissing
	}
	return data, nil
}
