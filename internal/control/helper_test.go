package control

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/proto"
)

// backend serves throw-away environments with an agent in this process.
type backend struct {
	refusal error
	asked   chan Throwaway
	ended   chan struct{}
	added   chan AddEnvironment
	list    []Environment
	edits   chan EditPolicy
}

func newBackend() *backend {
	return &backend{asked: make(chan Throwaway, 10), ended: make(chan struct{}, 10), added: make(chan AddEnvironment, 10), edits: make(chan EditPolicy, 10)}
}

func (b *backend) ServeThrowaway(_ context.Context, c proto.Conn, t Throwaway, ready func() error) error {
	b.asked <- t
	if b.refusal != nil {
		return b.refusal
	}
	defer func() { b.ended <- struct{}{} }()
	if err := ready(); err != nil {
		return err
	}
	s := agent.New(agent.Options{Cwd: "/", Home: "/"})
	defer s.Close()
	if err := s.Serve(c, proto.Hello{Peer: "exec-server run", Concurrency: 8, Extensions: true}); err != nil {
		return err
	}
	return errors.New("an error after ready is nobody's")
}

func (b *backend) AddEnvironment(_ context.Context, a AddEnvironment) (Added, error) {
	b.added <- a
	return Added{Kept: a.Key == "", Notes: []string{"a note"}}, b.refusal
}

func (b *backend) RemoveEnvironment(_ context.Context, name string) (Removed, error) {
	return Removed{Notes: []string{name + " is gone"}}, b.refusal
}

func (b *backend) Environments(context.Context) ([]Environment, error) { return b.list, b.refusal }

func (b *backend) Policy(_ context.Context, name string) (Policy, error) {
	return Policy{Name: name, Running: true, Policy: rules.Policy{Mode: rules.None}}, b.refusal
}

func (b *backend) EditPolicy(_ context.Context, e EditPolicy) (Policy, error) {
	b.edits <- e
	return Policy{Name: e.Name, Policy: rules.Policy{Mode: e.Mode, Rules: e.Add}}, b.refusal
}

func (b *backend) ExplainPolicy(_ context.Context, q ExplainPolicy) (Explained, error) {
	return Explained{"p", true, true, rules.Explanation{Lines: []string{q.Name, q.Target, string(q.Protocol)}}}, b.refusal
}

func serveOn(t *testing.T, b Backend) (s *Server, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "control")
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(context.Background(), b)
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return s, path
}
