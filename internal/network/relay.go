package network

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/exec-server/exec-server/internal/network/broker"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// maxWhy bounds what a log has of another's words, in bytes.
const maxWhy = 256

// secrets are those of all environments.
var secrets broker.Secrets

// relay has a broker carry the requests of a connection. Each is decided by the
// policy as it is then, and all go to the address that the program connected to. What
// was decided by the program's first bytes is d.
func (w *Way) relay(c *connection, s rules.Said, d rules.Decision) {
	m := &metered{Conn: c.client, meter: meter{budget: w.budget}, ctx: w.ctx}
	m.full = func() { w.denied(c, s, rules.Decision{Reason: rules.TooMuch, Rule: -1}) }
	// A request is read before it is decided about.
	m.count.Store(w.counters.asked(c.label(s), d))
	first := &atomic.Pointer[net.TCPConn]{}
	first.Store(c.upstream)
	o := broker.Options{
		To: c.to,
		Check: func(host string, _ uint16, app rules.Protocol) rules.Decision {
			return w.named(c, rules.Said{App: app, Name: host})
		},
		Decided: func(host string, app rules.Protocol, d rules.Decision, err error) {
			s := rules.Said{App: app, Name: host}
			switch {
			case d.Verdict == rules.Allow:
				m.count.Store(w.counters.allow(c.label(s)))
			case w.ctx.Err() == nil: // what was broken off was not denied
				m.count.Store(w.failed(c, s, d, err))
			}
		},
		Dial: func(ctx context.Context, _ string, _ uint16) (net.Conn, error) {
			if u := first.Swap(nil); u != nil {
				return u, nil
			}
			return w.again(ctx, c)
		},
		Begin:     w.budget.request,
		Secret:    secrets.Get,
		Authority: w.authority.Load(),
		RootCAs:   w.roots,
		Failed:    w.unanswered,
	}
	if s.App == rules.TLS {
		o.Name = s.Name
		broker.ServeTLS(w.ctx, m, o)
	} else {
		broker.Serve(w.ctx, m, o)
	}
}

// unanswered logs what went wrong with a request. That a host's certificate is not
// believed is the operator's to mend, or to know.
func (w *Way) unanswered(host string, err error) {
	var invalid *tls.CertificateVerificationError
	if !errors.As(err, &invalid) {
		w.opts.Log.Debug().Err(err).Str("name", label(host)).Msg("network: request")
		return
	}
	why := invalid.Err.Error() // which has names out of the certificate, of any length
	w.certificates.next(w.opts.Log.Warn).Str("name", label(host)).Str("error", why[:min(len(why), maxWhy)]).Msg("network: the host's certificate is not valid")
}

// again makes another upstream side for a connection, which has a place of its own.
func (w *Way) again(ctx context.Context, c *connection) (net.Conn, error) {
	if !w.budget.enter() {
		return nil, errors.New("too many connections")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	err := w.budget.await(ctx)
	var u *net.TCPConn
	if err == nil {
		u, err = w.dial(ctx, c.to)
	}
	if err != nil {
		w.budget.leave()
		return nil, err
	}
	return &placed{Conn: u, leave: sync.OnceFunc(w.budget.leave)}, nil
}

// placed gives its place in the budget back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

// metered is a program's side of a connection that a broker reads and writes.
type metered struct {
	net.Conn // no more than that, so that no byte passes another way
	meter
	count atomic.Pointer[counter] // of the latest request
	ctx   context.Context
	full  func()
	once  sync.Once
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	for taken := 0; taken < n; {
		t, err := m.take(out, n-taken)
		if err != nil {
			return 0, err
		}
		taken += t
	}
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	for written := 0; ; {
		t, err := m.take(in, min(len(b)-written, chunk))
		if err != nil {
			return written, err
		}
		n, err := m.Conn.Write(b[written : written+t])
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}

// CloseWrite tells the program that nothing more comes.
func (m *metered) CloseWrite() error {
	return m.Conn.(*net.TCPConn).CloseWrite()
}

func (m *metered) take(d direction, n int) (int, error) {
	n, err := m.budget.take(m.ctx, d, n)
	if errors.Is(err, errVolume) {
		m.once.Do(m.full)
	}
	m.count.Load().add(d, int64(n))
	return n, err
}
