package gateway

import (
	"context"
	"fmt"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// Serve serves a connection from a harness; name is "" for the default
// environment. It returns when the connection has ended.
func (g *Gateway) Serve(ctx context.Context, c proto.Conn, name, peer string) {
	hello := proto.Hello{Peer: peer, Concurrency: g.opts.Concurrency}
	if name == "" && g.opts.PerSession {
		g.serveSession(ctx, c, hello)
		return
	}
	if name == "" {
		name = g.opts.Default
	}
	g.serveNamed(ctx, c, g.opts.Spec(name), hello)
}

func (g *Gateway) serveNamed(ctx context.Context, c proto.Conn, spec runtime.Spec, hello proto.Hello) {
	sb, err := g.Open(ctx, spec)
	if err != nil {
		g.opts.Log.Warn().Err(err).Str("environment", spec.Name).Msg("connection refused")
		refuse(c, fmt.Errorf("environment %s: %w", spec.Name, err))
		return
	}
	g.join(ctx, c, sb, hello)
}

// join lets a sandbox serve the connection. However that ends, the connection
// ends too, and the harness comes back.
func (g *Gateway) join(ctx context.Context, c proto.Conn, sb runtime.Sandbox, hello proto.Hello) {
	if err := sb.Serve(ctx, c, hello); err != nil && ctx.Err() == nil {
		g.opts.Log.Warn().Err(err).Str("environment", sb.Spec().Name).Msg("connection lost")
	}
}

// refuse answers every request with why there is nobody to serve it.
func refuse(c proto.Conn, why error) {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		m, err := proto.ParseMessage(f.Body())
		if err != nil || m.Kind != proto.Request {
			return
		}
		if c.WriteFrames(proto.ErrorFrame(m.ID, proto.Errorf(proto.CodeInternal, "%s", why))) != nil {
			return
		}
	}
}
