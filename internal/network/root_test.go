package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// sandbox is a network namespace like a container's, and who is in it.
type sandbox struct{ ns *os.File }

func newSandbox(t testing.TB) sandbox {
	t.Helper()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 20, Size: 1 << 16}}
	c := exec.Command("sleep", "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL,
	}
	runtime.LockOSThread() // its death is about this thread
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return sandbox{ns}
}

// do runs f on a thread that is in the namespace.
func (s sandbox) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := unix.Setns(int(s.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// dial connects as a program in it would.
func (s sandbox) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = s.do(func() (err error) {
		d := net.Dialer{FallbackDelay: -1}
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// resolve looks a name up as a program in it would.
func (s sandbox) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return s.dial(ctx, network, "8.8.8.8:53")
	}}
	return r.LookupNetIP(ctx, "ip", name+".")
}

// client is a client of HTTP in it.
func (s sandbox) client(t testing.TB, trusted *x509.CertPool) *http.Client {
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			if _, err := netip.ParseAddr(host); err == nil {
				return s.dial(ctx, network, address)
			}
			addrs, err := s.resolve(ctx, host)
			if err != nil {
				return nil, err
			}
			return s.dial(ctx, network, net.JoinHostPort(addrs[0].String(), port))
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// openAt opens a way for a sandbox.
func openAt(t testing.TB, s sandbox, p rules.Policy) *Way {
	t.Helper()
	u, err := names.NewUpstream([]string{testnet.Resolver.String()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Name: "test", Netns: s.ns, Policy: p, Dir: t.TempDir(), Upstream: u, Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func get(c *http.Client, url string) (string, error) {
	r, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = errors.New(r.Status)
	}
	return string(b), err
}

func TestWayFromANamespace(t *testing.T) {
	n := testnet.Here(t)
	n.DNS.Set("one.test", time.Minute, testnet.Web.String(), testnet.Web6.String())
	n.DNS.Set("two.test", time.Minute, testnet.Web.String())
	s := newSandbox(t)
	w := openAt(t, s, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{
		{Allow: []string{"one.test"}}, {Allow: []string{testnet.Other.String(), testnet.Other6.String()}},
	}})
	c := s.client(t, n.CA.Pool())
	for _, url := range []string{
		"http://one.test/a", "https://one.test/b", "http://one.test/again",
		"http://" + testnet.Other.String() + ":8080/", "http://[" + testnet.Other6.String() + "]/",
	} {
		if got, err := get(c, url); err != nil || !strings.Contains(got, `"Path":`) {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
	if got, err := get(c, "http://two.test/"); err == nil {
		t.Errorf("a name that is not allowed: %q", got)
	}
	if k := n.DNS.Count("two.test"); k != 0 {
		t.Errorf("the name was asked for %d times", k)
	}
	for _, address := range []string{
		"1.1.1.1:443", "[2606:4700::1112]:443", testnet.Host.String() + ":22", "169.254.169.254:80", "[fd00:ec2::254]:80", testnet.Other.String() + ":9999",
	} {
		conn, err := s.dial(t.Context(), "tcp", address)
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v, %v", address, conn, err)
		}
	}
	u, err := s.dial(t.Context(), "udp", testnet.Other.String()+":443")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = u.Write([]byte("x"))
	if _, err := u.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("udp: %v", err)
	}
	_ = u.Close()
	for w.Stats().Denied[rules.Unsupported] == 0 {
		runtime.Gosched() // it is told of by and by
	}
	stats := w.Stats()
	if stats.Names["one.test"].Allowed < 3 || stats.Names["one.test"].In == 0 || stats.Lookups == 0 || stats.Denied[rules.Metadata] != 2 || stats.Denied[rules.OwnAddress] != 1 {
		t.Errorf("%+v", stats)
	}
}

// Set from none to a policy sets the namespace up, and a second way in the same
// namespace takes over from one that was closed.
func TestWayIsSetUpLaterAndAgain(t *testing.T) {
	testnet.Here(t)
	s := newSandbox(t)
	target := testnet.Other.String() + ":22"
	banner := func() (string, error) {
		c, err := s.dial(t.Context(), "tcp", target)
		if err != nil {
			return "", err
		}
		defer c.Close()
		b := make([]byte, len(testnet.Banner))
		_, err = io.ReadFull(c, b)
		return string(b), err
	}
	w := openAt(t, s, rules.Policy{Mode: rules.None})
	if _, err := banner(); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("mode none: %v", err)
	}
	if err := w.Set(allowing(testnet.Other.String()), false); err != nil {
		t.Fatal(err)
	}
	if got, err := banner(); err != nil || got != testnet.Banner {
		t.Errorf("%q, %v", got, err)
	}
	if err := w.Set(rules.Policy{Mode: rules.None}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := banner(); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("mode none again: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, s, allowing(testnet.Other.String()))
	if got, err := banner(); err != nil || got != testnet.Banner {
		t.Errorf("opened again: %q, %v", got, err)
	}
}

// A credential is added to requests in TLS, by a CA of the environment's own, and
// only where a rule says so.
func TestWayAddsCredentials(t *testing.T) {
	n := testnet.Here(t)
	n.DNS.Set("one.test", time.Minute, testnet.Web.String())
	n.DNS.Set("two.test", time.Minute, testnet.Web.String())
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSandbox(t)
	w := openAt(t, s, rules.Policy{Mode: rules.Rules, Intercept: true, Rules: []rules.Rule{
		{Allow: []string{"one.test"}, Credential: &rules.Credential{SecretFile: secret}}, {Allow: []string{"two.test"}},
	}})
	w.roots = n.CA.Pool()
	trusted := n.CA.Pool()
	if !trusted.AppendCertsFromPEM(w.authority.Load().PEM()) {
		t.Fatal("no CA")
	}
	c := s.client(t, trusted)
	for _, url := range []string{"https://one.test/a", "https://two.test/b", "http://two.test/c", "https://one.test/d"} {
		if got, err := get(c, url); err != nil || !strings.Contains(got, `"Path":`) {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
	var got []string
	for _, r := range n.Web.Requests() {
		got = append(got, r.Host+r.Path+" "+r.Header.Get("Authorization"))
	}
	if want := []string{"one.test/a Bearer hunter2", "two.test/b ", "two.test/c ", "one.test/d Bearer hunter2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if stats := w.Stats(); stats.Names["one.test"].Allowed != 2 || stats.Names["one.test"].In == 0 || stats.Names["two.test"].Allowed != 2 {
		t.Errorf("%+v", stats)
	}
}

// Where nothing answers a connection is not refused, and the end of the way does not
// wait for it.
func TestWayToNowhere(t *testing.T) {
	testnet.Here(t)
	s := newSandbox(t)
	w := openAt(t, s, allowing(testnet.Nowhere.String(), testnet.Nowhere6.String()))
	for i, a := range []netip.Addr{testnet.Nowhere, testnet.Nowhere6} {
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() {
			_, err := s.dial(ctx, "tcp", netip.AddrPortFrom(a, 80).String())
			end <- err
		}()
		for w.Stats().Open == i {
			runtime.Gosched()
		}
		select {
		case err := <-end:
			t.Errorf("%s: %v", a, err)
		default:
		}
		cancel()
		<-end
	}
}

// After Close there is no goroutine and no descriptor of a way, whatever went on.
func TestWayLeavesNothing(t *testing.T) {
	n := testnet.Here(t)
	n.DNS.Set("one.test", time.Minute, testnet.Web.String())
	s := newSandbox(t)
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	round := func() {
		w := openAt(t, s, rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{
			{Allow: []string{"one.test"}}, {Allow: []string{testnet.Other.String(), testnet.Nowhere.String()}},
		}})
		if _, err := s.resolve(t.Context(), "one.test"); err != nil {
			t.Fatal(err)
		}
		var open []net.Conn
		for _, address := range []string{testnet.Web.String() + ":443", testnet.Other.String() + ":22", testnet.Other.String() + ":9"} {
			c, err := s.dial(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		if _, err := open[1].Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		hangs := make(chan struct{})
		go func() {
			_, _ = s.dial(ctx, "tcp", testnet.Nowhere.String()+":80")
			close(hangs)
		}()
		for w.Stats().Open < 4 {
			runtime.Gosched()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-hangs
		for _, c := range open {
			_ = c.Close()
		}
	}
	round() // what is made once
	var before [2]int
	for i := range 3 {
		round()
		var now [2]int
		for start := time.Now(); ; {
			runtime.GC() // for the pipes in package net's pool; servers in the world notice by and by
			now = [2]int{runtime.NumGoroutine(), descriptors()}
			if i == 0 || now[0] <= before[0] && now[1] <= before[1] {
				break
			}
			if time.Since(start) > 30*time.Second {
				t.Fatalf("goroutines and descriptors: %v, and %v before", now, before)
			}
		}
		before = now
	}
}

// Many programs connect at once, some of them where they may not.
func TestWayForManyAtOnce(t *testing.T) {
	testnet.Here(t)
	s := newSandbox(t)
	w := openAt(t, s, allowing(testnet.Other.String()))
	const connections = 200
	ends := make(chan error, connections)
	for i := range connections {
		go func() {
			if i%4 == 0 {
				_, err := s.dial(t.Context(), "tcp", testnet.Web.String()+":22")
				if errors.Is(err, unix.ECONNREFUSED) {
					err = nil
				} else {
					err = fmt.Errorf("what is denied: %v", err)
				}
				ends <- err
				return
			}
			c, err := s.dial(t.Context(), "tcp", testnet.Other.String()+":22")
			if err == nil {
				_, err = io.ReadFull(c, make([]byte, len(testnet.Banner)))
				_ = c.Close()
			}
			ends <- err
		}()
	}
	for range connections {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	if s := w.Stats(); s.Total.Allowed != connections*3/4 || s.Total.Denied != connections/4 {
		t.Errorf("%+v", s.Total)
	}
}

// Two connections from the same port to different addresses are one thing to the
// listener, so the kernel gives one of them another port. Each has its own upstream side,
// and only that.
func TestWayFromAPortThatIsTaken(t *testing.T) {
	n := testnet.Here(t)
	s := newSandbox(t)
	w := openAt(t, s, rules.Policy{Mode: rules.Open})
	seen := n.Capture(t)
	for _, to := range [][2]netip.Addr{{testnet.Web, testnet.Other}, {testnet.Web6, testnet.Other6}} {
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
			cerr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
			return errors.Join(cerr, err)
		}}
		for _, a := range to {
			var c net.Conn
			err := s.do(func() (err error) {
				c, err = d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(a, 22).String())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, len(testnet.Banner))); err != nil {
				t.Error(err)
			}
			d.LocalAddr = c.LocalAddr()
			syns := 0
			for _, p := range seen.To(a) {
				if p.SYN {
					syns++
				}
			}
			if syns != 1 {
				t.Errorf("%s was connected to %d times", a, syns)
			}
		}
	}
	if got := w.Stats().Open; got != 4 {
		t.Errorf("%d places are taken", got)
	}
}
