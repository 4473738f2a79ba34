package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// The tests of the way out have a real daemon with real containers on one side, and
// on the other the registry, the rendezvous and the harnesses of package remotetest.

// outbound is a harness's way to the environments that registered with a peer.
type outbound struct {
	t    testing.TB
	peer *remotetest.Peer
}

func newOutbound(t testing.TB) *outbound {
	t.Helper()
	return &outbound{t, remotetest.New(t, remotetest.Options{})}
}

// connect opens a stream with a session; the environment's id is its name.
func (o *outbound) connect(id, resume string) *harness {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := o.peer.Open(ctx, id)
	if err != nil {
		o.t.Fatal(err)
	}
	h, err := join(ctx, o.t, conn, resume)
	if err != nil {
		o.t.Fatalf("environment %s: %v", id, err)
	}
	return h
}

// socket waits for the nth socket of an environment.
func (o *outbound) socket(id string, n int) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := o.peer.AwaitSocket(ctx, id, n); err != nil {
		o.t.Fatalf("environment %s does not connect for the %d. time: %v", id, n, err)
	}
}

// secret makes a token that is nowhere else.
func (r *root) secret(name string) (token, file string) {
	r.t.Helper()
	token = fmt.Sprintf("sk-%s-%d-%d", name, os.Getpid(), time.Now().UnixNano())
	file = filepath.Join(r.dir, name+".key")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return token, file
}

// env runs exec-server env, which has to succeed.
func (r *root) env(stdin string, args ...string) string {
	r.t.Helper()
	stdout, stderr, code := cli(r.t, stdin, append([]string{"--config", r.config, "env"}, args...)...)
	if code != 0 {
		r.t.Fatalf("env %s: exit %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// listed is what env ls tells about an environment; nil if it is not there.
func (r *root) listed(name string) *control.Environment {
	r.t.Helper()
	var list []control.Environment
	if err := json.Unmarshal([]byte(r.env("", "ls", "--json")), &list); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range list {
		if e.Name == name {
			return &e
		}
	}
	return nil
}

// becomes waits until env ls tells what is wanted of an environment.
func (r *root) becomes(name, what string, wanted func(*control.Environment) bool) *control.Environment {
	r.t.Helper()
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		e := r.listed(name)
		if e != nil && wanted(e) {
			return e
		}
		if time.Since(start) > 30*time.Second {
			r.t.Fatalf("environment %s does not become %s: %+v", name, what, e)
		}
	}
}
