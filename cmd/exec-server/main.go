// Command exec-server is a sandbox for coding agents that speaks the protocol
// of codex exec-server.
package main

import (
	"context"
	"os"

	"github.com/exec-server/exec-server/internal/cli"
	"github.com/exec-server/exec-server/internal/runtime/containerd"
)

func main() {
	if containerd.ShimMain() {
		return
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
