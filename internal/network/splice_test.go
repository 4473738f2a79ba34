package network

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// pair is two ends of a connection.
func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x.(*net.TCPConn), y.(*net.TCPConn)
}

// spliced is a program and a server, with a splice between them.
func spliced(t testing.TB, ctx context.Context, l rules.Limits) (program, server *net.TCPConn, c *counter, end chan error) {
	t.Helper()
	program, client := pair(t)
	upstream, server := pair(t)
	c, end = &counter{}, make(chan error, 1)
	go func() { end <- splice(ctx, client, upstream, meter{newBudget(l, 0), c}) }()
	return program, server, c, end
}

func TestSpliceBothWays(t *testing.T) {
	program, server, c, end := spliced(t, t.Context(), rules.Limits{})
	up, down := make([]byte, 3<<20+17), make([]byte, 1<<20+1)
	_, _ = rand.Read(up)
	_, _ = rand.Read(down)
	for _, s := range []struct {
		conn *net.TCPConn
		b    []byte
	}{{program, up}, {server, down}} {
		go func() {
			_, _ = s.conn.Write(s.b)
			_ = s.conn.CloseWrite()
		}()
	}
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(server)
		got <- b
	}()
	if b, err := io.ReadAll(program); err != nil || sha256.Sum256(b) != sha256.Sum256(down) {
		t.Errorf("down: %d bytes, %v", len(b), err)
	}
	if b := <-got; sha256.Sum256(b) != sha256.Sum256(up) {
		t.Errorf("up: %d bytes", len(b))
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
	if n := c.read(); n.In != uint64(len(down)) || n.Out != uint64(len(up)) {
		t.Errorf("counted %+v", n)
	}
}

// What one end has said comes while the other end goes on.
func TestSpliceHalfClosed(t *testing.T) {
	program, server, c, end := spliced(t, t.Context(), rules.Limits{})
	_, _ = program.Write([]byte("all of it"))
	_ = program.CloseWrite()
	if b, err := io.ReadAll(server); err != nil || string(b) != "all of it" {
		t.Errorf("%q, %v", b, err)
	}
	if n := c.read(); n.Out != 9 {
		t.Errorf("counted %+v", n)
	}
	for range 3 {
		_, _ = server.Write([]byte("more"))
		if b := make([]byte, 4); true {
			if _, err := io.ReadFull(program, b); err != nil || string(b) != "more" {
				t.Errorf("%q, %v", b, err)
			}
		}
	}
	_ = server.Close()
	if n, err := program.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", n, err)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
}

func TestSplicePassesResetsOn(t *testing.T) {
	for _, byServer := range []bool{false, true} {
		for _, halfClosed := range []bool{false, true} {
			program, server, _, end := spliced(t, t.Context(), rules.Limits{})
			from, to := program, server
			if byServer {
				from, to = server, program
			}
			if halfClosed {
				_ = to.CloseWrite()
				_, _ = io.ReadAll(from)
			}
			reset(from)
			if _, err := to.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("by server %t, half closed %t: %v", byServer, halfClosed, err)
			}
			if err := <-end; !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("by server %t, half closed %t: splice: %v", byServer, halfClosed, err)
			}
		}
	}
}

// Urgent data, as telnet and FTP have it, is neither lost nor in the way.
func TestSpliceUrgentData(t *testing.T) {
	program, server, _, end := spliced(t, t.Context(), rules.Limits{})
	raw, err := program.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := raw.Control(func(fd uintptr) { err = unix.Send(int(fd), []byte("ab!"), unix.MSG_OOB) }); err != nil {
			t.Fatal(err)
		}
		_, _ = program.Write([]byte("cd"))
	}
	_ = program.CloseWrite()
	if b, err := io.ReadAll(server); err != nil || string(b) != "ab!cdab!cdab!cd" {
		t.Errorf("%q, %v", b, err)
	}
	_ = server.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// A reset is seen while bytes wait to be taken.
func TestSpliceResetWhileFull(t *testing.T) {
	program, server, _, end := spliced(t, t.Context(), rules.Limits{})
	go func() { _, _ = io.Copy(server, zeros{}) }()
	if _, err := io.ReadFull(program, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	reset(program)
	if err := <-end; err == nil {
		t.Error("no error")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestSpliceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	program, server, _, end := spliced(t, ctx, rules.Limits{})
	over := errors.New("over")
	cancel(over)
	for _, c := range []*net.TCPConn{program, server} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Error(err)
		}
	}
	if err := <-end; !errors.Is(err, over) {
		t.Error(err)
	}
}

func TestSpliceVolume(t *testing.T) {
	program, server, c, end := spliced(t, t.Context(), rules.Limits{Bytes: 1 << 20})
	go func() { _, _ = server.Write(make([]byte, 2<<20)) }()
	n, err := io.Copy(io.Discard, program)
	if n > 1<<20 || !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-end; !errors.Is(err, errVolume) {
		t.Error(err)
	}
	if n := c.read(); n.In != 1<<20 {
		t.Errorf("counted %+v", n)
	}
}

func BenchmarkSplice(b *testing.B) {
	program, server, _, _ := spliced(b, b.Context(), rules.Limits{})
	block := bytes.Repeat([]byte("x"), 1<<20)
	b.SetBytes(int64(len(block)))
	go func() {
		for {
			if _, err := server.Write(block); err != nil {
				return
			}
		}
	}()
	for b.Loop() {
		if _, err := io.ReadFull(program, block); err != nil {
			b.Fatal(err)
		}
	}
	_ = program.Close()
}

func BenchmarkPlain(b *testing.B) {
	program, server := pair(b)
	block := bytes.Repeat([]byte("x"), 1<<20)
	b.SetBytes(int64(len(block)))
	go func() {
		for {
			if _, err := server.Write(block); err != nil {
				return
			}
		}
	}()
	for b.Loop() {
		if _, err := io.ReadFull(program, block); err != nil {
			b.Fatal(err)
		}
	}
	_ = program.Close()
}
