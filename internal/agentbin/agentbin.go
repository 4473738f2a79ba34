// Package agentbin carries the binaries of the agent and of its helper inside the
// server's own. The build script puts them into bin/ before it builds the server;
// a server that was built without them works with --runtime host only.
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
func Agent() ([]byte, error) { return read("exec-agent") }

// Helper is the helper's binary, a static executable.
func Helper() ([]byte, error) { return read("exec-helper") }

func read(name string) ([]byte, error) {
	data, err := files.ReadFile("bin/" + name)
	if err != nil {
		return nil, ErrMissing
	}
	return data, nil
}
