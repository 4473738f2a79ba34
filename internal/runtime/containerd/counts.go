package containerd

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// countsTime bounds how long an agent may take to tell its counts.
const countsTime = time.Second

// Counts implements runtime.Sandbox.
func (s *sandbox) Counts(ctx context.Context) (proto.Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, countsTime)
	defer cancel()
	agent, err := s.Dial(ctx)
	if err != nil {
		return proto.Counts{}, err
	}
	defer agent.Close()
	counts, err := askCounts(ctx, agent)
	if err != nil {
		return proto.Counts{}, fmt.Errorf("counts of %s: %w", s.spec.Name, err)
	}
	return counts, nil
}

func askCounts(ctx context.Context, agent *net.UnixConn) (proto.Counts, error) {
	defer context.AfterFunc(ctx, func() { agent.Close() })()
	c := proto.NewStreamConn(agent, proto.MaxCounts)
	err := c.WriteFrames(proto.Hello{Count: true}.Frame())
	var f proto.Frame
	if err == nil {
		f, err = c.ReadFrame()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return proto.Counts{}, err
	}
	return proto.ParseCounts(f.Body())
}
