package main

import (
	"fmt"
	"os"

	"github.com/exec-server/exec-server/internal/helper"
	"github.com/exec-server/exec-server/internal/netproxy"
	"github.com/exec-server/exec-server/internal/netproxy/masking"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// serveProxy is the network proxy of one command. Its sockets are the descriptors
// behind the one to the agent.
func serveProxy() error {
	socket, err := helper.Open()
	if err != nil {
		return err
	}
	file := func(n int) *os.File {
		return os.NewFile(uintptr(helper.SocketFD+1+n), fmt.Sprint("socket ", n))
	}
	return netproxy.Run(proto.NewStreamConn(socket, policy.MaxMessage), file)
}

// mask answers the question how the environment of a command is masked.
func mask(c *helper.Call) { c.Answer(masking.Answer(c.Params.AppendJSON(nil))) }
