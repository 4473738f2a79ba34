package containerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/containerd/v2/client"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/broker"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/runtime"
)

// exit is a way out that only remembers what it is told.
type exit struct {
	mu     sync.Mutex // guards all below
	policy rules.Policy
	inode  uint64 // of the namespace
	closed bool
	used   int64
	err    error // of Set
}

func openExit(o network.Options) (runtime.Network, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(o.Netns.Fd()), &st); err != nil {
		return nil, err
	}
	return &exit{policy: o.Policy, inode: st.Ino, used: o.Used}, nil
}

func (e *exit) Policy() rules.Policy {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.policy
}

func (e *exit) Set(p rules.Policy, _ bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.policy = p
	}
	return e.err
}

func (e *exit) Explain(context.Context, rules.Question) rules.Explanation { return rules.Explanation{} }

func (e *exit) Stats() network.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return network.Stats{Used: e.used}
}

func (e *exit) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

func (e *exit) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

func exitOf(s runtime.Sandbox) *exit { return s.(*sandbox).way.Network.(*exit) }

func allowing(name string) rules.Policy {
	return rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: []string{name}}}}
}

func TestTheNetworkIsThereBeforeTheAgentRuns(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	var state client.ProcessStatus
	d.opts.Network = func(o network.Options) (runtime.Network, error) {
		containers, err := d.client.Containers(d.ctx)
		if err != nil {
			return nil, err
		}
		task, err := containers[0].Task(d.ctx, nil)
		if err != nil {
			return nil, err
		}
		status, err := task.Status(d.ctx)
		state = status.Status
		return &exit{policy: o.Policy}, errors.Join(err, unix.Fstat(int(o.Netns.Fd()), &unix.Stat_t{}))
	}
	s := d.create(t, runtime.Spec{Name: "a", Image: "test/static:1", Network: allowing("example.org")})
	if state != client.Created {
		t.Errorf("the task is %s when its network is opened", state)
	}
	if got := s.Network().Policy(); got.Mode != rules.Rules || len(got.Rules) != 1 {
		t.Errorf("the policy is %+v", got)
	}
	e := exitOf(s)
	d.remove(t, s)
	if !e.isClosed() {
		t.Error("the network is open after the sandbox's end")
	}
}

func TestTheNetworkIsTheContainersOwn(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	a := d.create(t, runtime.Spec{Name: "a", Image: "test/static:1"})
	b := d.create(t, runtime.Spec{Name: "b", Image: "test/static:1"})
	for _, s := range []*sandbox{a, b} {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join("/proc", strconv.Itoa(s.pid), "ns/net"), &st); err != nil || st.Ino != exitOf(s).inode {
			t.Errorf("namespace %d is opened, and not %d, %v", exitOf(s).inode, st.Ino, err)
		}
		if got := s.Network().Policy().Mode; got != rules.None {
			t.Errorf("without a policy the mode is %q", got)
		}
	}
	// A process with the number of the agent's that is another's.
	stranger := &sandbox{r: a.r, ids: b.ids, pid: a.pid, pidfd: a.pidfd}
	if ns, err := stranger.netns(); err == nil || !strings.Contains(err.Error(), "is not its init") {
		t.Errorf("the namespace of a stranger is opened: %v, %v", ns, err)
	}
	stranger.ids, stranger.pid = a.ids, os.Getpid()
	if ns, err := stranger.netns(); err == nil {
		t.Errorf("the daemon's own namespace is opened: %v", ns)
	}
}

func TestWithoutItsNetworkASandboxDoesNotBegin(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	d.opts.Network = func(network.Options) (runtime.Network, error) { return nil, errors.New("no luck") }
	if s, err := d.Create(d.ctx, runtime.Spec{Name: "a", Image: "test/static:1"}); err == nil || !strings.HasSuffix(err.Error(), "network: no luck") {
		t.Errorf("%v, %v", s, err)
	}
	if left := d.activeSnapshots(t); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// What is changed in a policy is there after a restart, for that container only.
func TestAnEditedPolicyLastsAsLongAsItsContainer(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	made := runtime.Spec{Name: "a", Image: "test/static:1", Network: allowing("made.example")}
	a, err := d.Create(d.ctx, made)
	if err != nil {
		t.Fatal(err)
	}
	first := func(s runtime.Sandbox) string {
		t.Helper()
		if rules := s.Network().Policy().Rules; len(rules) == 1 {
			return rules[0].Allow[0]
		}
		return "none"
	}
	again := func() {
		t.Helper()
		e := exitOf(a)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if !e.isClosed() {
			t.Error("the network is open after the runtime's end")
		}
		d = p.startDaemon(t)
		adopted, err := d.Adopt(d.ctx)
		if err != nil || len(adopted) != 1 {
			t.Fatalf("adopted %v, %v", adopted, err)
		}
		a = adopted[0]
	}
	again()
	if got := first(a); got != "made.example" {
		t.Errorf("not edited, it allows %s", got)
	}
	if err := errors.Join(a.Network().Set(rules.Policy{Mode: rules.None}, false), a.Network().Set(allowing("edited.example"), false)); err != nil {
		t.Fatal(err)
	}
	again()
	if got := first(a); got != "edited.example" {
		t.Errorf("edited, it allows %s", got)
	}
	exitOf(a).err = errors.New("a bad rule")
	if err := a.Network().Set(allowing("bad.example"), false); err == nil {
		t.Error("a bad edit is no error")
	}
	intercepting := allowing("made.example")
	intercepting.Intercept = true
	if err := a.Network().Set(intercepting, false); !errors.Is(err, errNoCA) {
		t.Errorf("without a CA intercept is set: %v", err)
	}
	again()
	if got := first(a); got != "edited.example" {
		t.Errorf("after bad edits it allows %s", got)
	}

	// What narrowed the policy must not be lost with its file.
	file := filepath.Join(p.root, "environments/a/network.json")
	for _, text := range []string{"", "{", "null", "{}", `{"container":"` + a.(*sandbox).task.ID() + `","policy":{"mode":"open","no_tls":true}}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		again()
		if got := a.Network().Policy().Mode; got != rules.None {
			t.Errorf("with %q for its edits the mode is %q", text, got)
		}
	}
	// Nor is a container lost with its network.
	if err := a.Network().Set(allowing("edited.example"), false); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = p.startDaemon(t)
	d.opts.Network = func(o network.Options) (runtime.Network, error) {
		if o.Policy.Mode != rules.None {
			return nil, errors.New("no luck")
		}
		return openExit(o)
	}
	adopted, err := d.Adopt(d.ctx)
	if err != nil || len(adopted) != 1 || first(adopted[0]) != "none" {
		t.Fatalf("where no policy can be in force there are %v, %v", adopted, err)
	}
	a, d.opts.Network = adopted[0], openExit
	d.remove(t, a)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the edits are kept: %v", err)
	}

	// A crash may leave it to the container that comes next.
	if err := os.WriteFile(file, []byte(`{"container":"e-a-0","policy":{"mode":"open"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err = d.Create(d.ctx, made); err != nil {
		t.Fatal(err)
	}
	again()
	if got := first(a); got != "made.example" {
		t.Errorf("the next container allows %s", got)
	}
	d.remove(t, a)
}

// How much has passed counts on after a restart, for that container.
func TestTheVolumeOfAContainerIsKept(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	bounded := allowing("example.org")
	bounded.Bytes = 100
	spec := runtime.Spec{Name: "a", Image: "test/static:1", Network: bounded}
	a, err := d.Create(d.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	exitOf(a).used = 42
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = p.startDaemon(t)
	adopted, err := d.Adopt(d.ctx)
	if err != nil || len(adopted) != 1 {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	if got := adopted[0].Network().Stats().Used; got != 42 {
		t.Errorf("after a restart %d has passed", got)
	}
	d.remove(t, adopted[0])
	if got := d.create(t, spec).Network().Stats().Used; got != 0 {
		t.Errorf("of the next container %d has passed", got)
	}
}

func TestNameServersOfASandbox(t *testing.T) {
	for mode, want := range map[rules.Mode]string{"": "timeout:1 attempts:1", rules.None: "timeout:1 attempts:1", rules.Rules: "timeout:5 attempts:2"} {
		if got := resolvers(mode); !strings.HasSuffix(got, "\nnameserver 192.0.0.1\noptions "+want+"\n") {
			t.Errorf("with mode %q it is %q", mode, got)
		}
	}
}

func TestNameServersFollowTheMode(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	s := d.create(t, runtime.Spec{Name: "a", Image: "test/static:1"})
	conf := func() string { return askOf(t, s, "!read /etc/resolv.conf") + "\n" }
	if err := s.Network().Set(allowing("example.org"), false); err != nil || conf() != resolvers(rules.Rules) {
		t.Errorf("with rules it is %q, %v", conf(), err)
	}
	askOf(t, s, "!write /etc/resolv.conf mine")
	if err := s.Network().Set(rules.Policy{Mode: rules.None}, false); err != nil || conf() != "mine\n" {
		t.Errorf("what the sandbox has made of it is %q, %v", conf(), err)
	}
}

// A container that is to trust its environment's CA has the certificate and not the
// key, and variables that give way to the profile's.
func TestTheCertificateOfTheEnvironment(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	staticImage(t, d.ctx, d.server.Client())
	policy := allowing("example.org")
	plain := d.create(t, runtime.Spec{Name: "plain", Image: "test/static:1", Network: policy})
	if got := askOf(t, plain, "!env"); strings.Contains(got, "SSL_CERT_FILE") {
		t.Errorf("without intercept there are %q", got)
	}
	policy.Intercept = true
	s := d.create(t, runtime.Spec{Name: "a", Image: "test/static:1", Network: policy, Env: []string{"PIP_CERT=/mine"}, AgentArgs: []string{"--detach", "1s"}})
	dir := filepath.Join(p.root, "environments/a/ca")
	ca, err := broker.OpenAuthority(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := askOf(t, s, "!read "+guestCA); got != strings.TrimSpace(string(ca.PEM())) {
		t.Errorf("the certificate is %q", got)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("the CA's directory has %v, %v", st.Mode(), err)
	}
	if got := askOf(t, s, "!write "+guestCA+" x"); !strings.Contains(got, "read-only") {
		t.Errorf("writing it: %q", got)
	}
	env := "\n" + askOf(t, s, "!env") + "\n"
	for _, want := range []string{"NODE_EXTRA_CA_CERTS=" + guestCA, "SSL_CERT_FILE=" + guestBundle, "PIP_CERT=/mine"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("there is no %s in %q", want, env)
		}
	}
	bad := filepath.Join(p.root, "environments/b/ca")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bad), 0o700), os.WriteFile(bad, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Create(d.ctx, runtime.Spec{Name: "b", Image: "test/static:1", Network: policy}); err == nil {
		t.Errorf("there is a sandbox without its CA: %v", s)
	}
}
