package httpclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxIdle connections wait for another request, each for idleTime at most.
	maxIdle  = 32
	idleTime = 90 * time.Second
	// keepAlive is how often a connection without traffic is probed.
	keepAlive = 15 * time.Second
)

// link is a connection to an origin or a proxy.
type link struct {
	net.Conn
	tcp   net.Conn // below TLS
	in    *bufio.Reader
	key   string
	since time.Time // when it became idle
}

// pool keeps connections for the next request.
type pool struct {
	roots *x509.CertPool // nil is the system's

	mu   sync.Mutex // guards idle
	idle []*link
}

// get returns an idle connection for the key, or nil.
func (p *pool) get(key string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		l := p.idle[i]
		if l.key != key {
			continue
		}
		p.idle = append(p.idle[:i], p.idle[i+1:]...)
		if time.Since(l.since) < idleTime && l.quiet() {
			return l
		}
		_ = l.Close()
	}
	return nil
}

// put keeps a connection whose last response has been read.
func (p *pool) put(l *link) {
	_ = l.SetDeadline(time.Time{})
	l.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, l)
	for len(p.idle) > maxIdle || time.Since(p.idle[0].since) >= idleTime {
		_ = p.idle[0].Close()
		p.idle = p.idle[1:]
	}
}

// quiet tells whether nothing has come on an idle connection, its end included.
func (l *link) quiet() bool {
	sc, ok := l.tcp.(syscall.Conn)
	if !ok || l.in.Buffered() > 0 {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && quiet
}

// dial connects to a target, by way of a proxy unless that is nil.
func (p *pool) dial(ctx context.Context, t, proxy *target) (*link, error) {
	to := t
	if proxy != nil {
		to = proxy
	}
	d := net.Dialer{KeepAlive: keepAlive}
	tcp, err := d.DialContext(ctx, "tcp", to.address())
	if err != nil {
		return nil, err
	}
	// The connection ends with the request that it is made for.
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	l := &link{Conn: tcp, tcp: tcp}
	if to.scheme == "https" {
		err = l.secure(ctx, to.name(), p.roots)
	}
	if err == nil && proxy != nil && t.scheme == "https" {
		if err = l.tunnel(t, proxy); err == nil {
			err = l.secure(ctx, t.name(), p.roots)
		}
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	l.in = bufio.NewReader(l.Conn)
	return l, nil
}

func (l *link) secure(ctx context.Context, name string, roots *x509.CertPool) error {
	c := tls.Client(l.Conn, &tls.Config{ServerName: name, RootCAs: roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	l.Conn = c
	return nil
}

// tunnel asks a proxy for a way through.
func (l *link) tunnel(t, proxy *target) error {
	address := t.host + ":" + t.port
	ask := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if proxy.basic != "" {
		ask += "Proxy-Authorization: " + proxy.basic + "\r\n"
	}
	if _, err := l.Write([]byte(ask + "\r\n")); err != nil {
		return err
	}
	// One byte at a time: what follows is for TLS.
	h, err := readHead(bufio.NewReaderSize(oneByte{l.Conn}, 16))
	if err != nil {
		return err
	}
	if h.status/100 != 2 {
		return fmt.Errorf("the proxy answers %d", h.status)
	}
	return nil
}

// oneByte reads no more than asked for.
type oneByte struct{ net.Conn }

func (o oneByte) Read(p []byte) (int, error) { return o.Conn.Read(p[:1]) }
