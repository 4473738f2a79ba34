package egress

import (
	"context"
	"net/http"

	"github.com/exec-server/exec-server/internal/remote/socket"
)

// Connect opens a WebSocket whose messages are of limit bytes at most. It takes at
// most 10 s. Redirects are refusals, which are *socket.RefusedError.
func (c *Client) Connect(ctx context.Context, to string, header http.Header, limit int64) (*socket.Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u, err := target(to)
	if err != nil {
		return nil, err
	}
	t, err := c.dialer(u)
	if err != nil {
		return nil, err
	}
	defer t.CloseIdleConnections()
	return socket.Dial(ctx, &http.Client{Transport: t, CheckRedirect: noRedirect}, u.String(), header, limit)
}
