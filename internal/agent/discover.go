package agent

import (
	"github.com/exec-server/exec-server/internal/discover"
	"github.com/exec-server/exec-server/internal/proto"
)

func decodeDiscover(v proto.Value) (operation, error) {
	roots, err := discover.Decode(v)
	return operation{do: func(c *conn) (proto.Result, error) {
		return discover.Roots(roots, func(sandbox *proto.Sandbox, f func()) error {
			return c.server.confineFiles(sandbox, false, func() error { f(); return nil })
		})
	}}, err
}
