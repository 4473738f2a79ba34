package host

import (
	"net"
	"os"
	"testing"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

func create(t *testing.T, spec runtime.Spec) runtime.Sandbox {
	t.Helper()
	r := New(agent.Options{})
	sb, err := r.Create(t.Context(), spec)
	if err != nil || sb.Spec().Name != spec.Name {
		t.Fatalf("%v, %v", sb, err)
	}
	if adopted, err := r.Adopt(t.Context()); err != nil || len(adopted) > 0 {
		t.Errorf("it adopts %v, %v", adopted, err)
	}
	t.Cleanup(func() {
		if err := sb.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		<-sb.Done()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return sb
}

func connect(t *testing.T, sb runtime.Sandbox, hello proto.Hello) *client.Client {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _ = sb.Serve(t.Context(), proto.NewStreamConn(theirs, proto.MaxRequest), hello) }()
	c := client.New(proto.NewStreamConn(ours, proto.MaxAnswer), nil)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTheHostServesItself(t *testing.T) {
	c := connect(t, create(t, runtime.Spec{Name: "a"}), proto.Hello{Peer: "test"})
	if _, err := c.Initialize(t.Context(), "test", ""); err != nil {
		t.Fatal(err)
	}
	info, err := c.Call(t.Context(), "environment/info", nil)
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Get("cwd").Str(); got != proto.FileURI(wd).String() {
		t.Errorf("the working directory is %s, not %s", got, wd)
	}
	if info.Get("userHomeDir").Str() == "" || info.Get("shell").Get("path").Str() == "" {
		t.Error("the user is not told")
	}
}

func TestRemoveEndsSessions(t *testing.T) {
	sb := create(t, runtime.Spec{Name: "a"})
	c := connect(t, sb, proto.Hello{Peer: "test"})
	id, err := c.Initialize(t.Context(), "test", "")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-sb.Done():
		t.Fatal("it has ended already")
	default:
	}
	for range 2 { // it may be called again
		if err := sb.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	<-sb.Done()
	if _, err := connect(t, sb, proto.Hello{Peer: "test"}).Initialize(t.Context(), "test", id); err == nil {
		t.Error("the session is there still")
	}
}

// The environment of one session ends with it.
func TestASandboxEndsWithItsChosenSession(t *testing.T) {
	sb := create(t, runtime.Spec{Name: "a", Ephemeral: true})
	c := connect(t, sb, proto.Hello{Peer: "test", SessionID: "a"})
	_ = c.Close() // without ever opening it
	<-sb.Done()
}
