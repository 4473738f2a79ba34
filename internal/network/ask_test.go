package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/hello"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// clientHello is what a client of TLS says first, who wants a name.
func clientHello(t *testing.T, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() {
		_ = tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(context.Background())
	}()
	first := make([]byte, 1<<14)
	n, err := b.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	return first[:n]
}

var named = rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: []string{"one.test", "*.more.test"}}}}

// web is a rig where an address has names, and says what it is told.
func web(t *testing.T, p rules.Policy, names ...string) *rig {
	t.Helper()
	var pins []string
	for _, n := range names {
		pins = append(pins, n, "93.184.216.34")
	}
	r := newRig(t, p, pins...)
	r.serveAt("93.184.216.34:443", echo)
	return r
}

func TestTLSByItsName(t *testing.T) {
	r := web(t, named, "one.test", "a.more.test", "two.test")
	for name, want := range map[string]string{
		"one.test": "", "a.more.test": "", "ONE.test": "",
		"two.test": "tls 93.184.216.34:443 two.test mode", "b.more.test": "tls 93.184.216.34:443 b.more.test wrong-name",
	} {
		first := string(clientHello(t, name))
		got, err := say(t, r.must("93.184.216.34:443"), first)
		if want == "" && (err != nil || got != first) {
			t.Errorf("%s: %d bytes came back, %v", name, len(got), err)
		}
		if want == "" {
			continue
		}
		if got != "" || err == nil {
			t.Errorf("%s: %d bytes came back, %v", name, len(got), err)
		}
		if d := r.Stats().Denials[0]; d.What+" "+string(d.Reason) != want {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if s := r.Stats(); s.Names["one.test"].Allowed != 2 || s.Names["one.test"].In == 0 || s.Names["a.more.test"].Allowed != 1 {
		t.Errorf("%+v", s.Names)
	}
}

// A hello may come in pieces. What nobody knows yet gets nowhere.
func TestTLSInPieces(t *testing.T) {
	r := web(t, named, "one.test")
	c := r.must("93.184.216.34:443")
	first := clientHello(t, "one.test")
	for piece := range slices.Chunk(first, 100) {
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, first) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// Bytes that come one by one are not looked at again and again.
func TestManyPieces(t *testing.T) {
	before := maxLooks
	t.Cleanup(func() { maxLooks = before })
	maxLooks = 3
	r := web(t, named, "one.test")
	c := r.must("93.184.216.34:443")
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nX: ")
	var err error
	for range hello.Max - 100 {
		if _, err = io.WriteString(c, "x"); err != nil {
			break
		}
	}
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if d := r.Stats().Denials; err == nil || len(d) != 1 || d[0].Reason != rules.NoName {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestNoName(t *testing.T) {
	r := web(t, named, "one.test")
	for what, text := range map[string]string{
		"tls 93.184.216.34:443 one.test": string(clientHello(t, "")),
		"tcp 93.184.216.34:443 one.test": "SSH-2.0-client\r\n",
	} {
		if got, err := say(t, r.must("93.184.216.34:443"), text); got != "" || err == nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if d := r.Stats().Denials[0]; d.What != what || d.Reason != rules.NoName {
			t.Errorf("%+v, want %s", d, what)
		}
	}
}

func TestServersThatSpeakFirst(t *testing.T) {
	speak := func(c *net.TCPConn) {
		defer c.Close()
		_, _ = c.Write([]byte("220 ready\r\n"))
		_, _ = io.Copy(io.Discard, c)
	}
	r := web(t, named, "one.test")
	r.serveAt("93.184.216.34:443", speak)
	c, err := r.program("93.184.216.34:443")
	if err == nil { // or it was reset before that was seen
		var n int
		if n, err = c.Read(make([]byte, 100)); n != 0 {
			t.Errorf("mode rules: %d bytes came", n)
		}
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("mode rules: %v", err)
	}
	if d := r.Stats().Denials; len(d) != 1 || d[0].Reason != rules.NoName {
		t.Errorf("%+v", d)
	}
	r = web(t, rules.Policy{Mode: rules.Open, Rules: []rules.Rule{{Deny: []string{"one.test"}}}}, "two.test")
	r.serveAt("93.184.216.34:443", speak)
	if b, err := say(t, r.must("93.184.216.34:443"), ""); err != nil || b != "220 ready\r\n" {
		t.Errorf("mode open: %q, %v", b, err)
	}
	if got, err := say(t, r.must("93.184.216.34:443"), string(clientHello(t, "one.test"))); err == nil && got != "220 ready\r\n" {
		t.Errorf("a denied name in mode open: %q, %v", got, err)
	}
}

// In mode open a name that is denied is denied, and the others pass.
func TestDeniedNamesInModeOpen(t *testing.T) {
	r := web(t, rules.Policy{Mode: rules.Open, Rules: []rules.Rule{{Deny: []string{"one.test"}}}}, "two.test")
	if got, err := say(t, r.must("93.184.216.34:443"), string(clientHello(t, "one.test"))); got != "" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{string(clientHello(t, "two.test")), "anything else\r\n", "\x00"} {
		if got, err := say(t, r.must("93.184.216.34:443"), text); err != nil || got != text {
			t.Errorf("%q for %q, %v", got, text, err)
		}
	}
}

// Who says a name whose answer has expired is not denied if it still is the answer.
func TestANameThatHasExpired(t *testing.T) {
	r := web(t, named, "one.test")
	r.mu.Lock()
	r.former["a.more.test"] = []netip.Addr{netip.MustParseAddr("93.184.216.34")}
	r.mu.Unlock()
	first := string(clientHello(t, "a.more.test"))
	if got, err := say(t, r.must("93.184.216.34:443"), first); err != nil || got != first {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

func TestAsk(t *testing.T) {
	client, program := pair(t)
	upstream, server := pair(t)
	_ = server
	_, _ = program.Write([]byte("GET / HTTP/1.1\r\nHost: one.test\r\n\r\n"))
	h, err := ask(client, upstream, helloTime)
	if err != nil || h.Name != "one.test" {
		t.Errorf("%+v, %v", h, err)
	}
	// Nothing was taken away, and no deadline is left.
	b := make([]byte, 3)
	if _, err := io.ReadFull(client, b); err != nil || string(b) != "GET" {
		t.Errorf("%q, %v", b, err)
	}
	client, program = pair(t)
	_, _ = program.Write([]byte("GET / HTTP/1.1\r\n"))
	if h, err := ask(client, upstream, time.Nanosecond); err != nil || h.Name != "" || h.Kind != hello.Other {
		t.Errorf("a client that is slow: %+v, %v", h, err)
	}
	reset(program)
	_, _ = io.Copy(io.Discard, client)
	client, program = pair(t)
	reset(program)
	if _, err := ask(client, upstream, helloTime); err == nil {
		t.Error("no error of a client that is gone")
	}
}

// Whoever says too much or nothing has said nothing.
func TestListenIsBounded(t *testing.T) {
	client, program := pair(t)
	go func() { _, _ = program.Write([]byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 40<<10))) }()
	if h, err := listen(client); err != nil || h.Name != "" {
		t.Errorf("%+v, %v", h, err)
	}
	client, _ = pair(t)
	_ = client.SetReadDeadline(time.Now())
	if h, err := listen(client); err == nil || h.Name != "" {
		t.Errorf("%+v, %v", h, err)
	}
}
