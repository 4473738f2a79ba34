package remotetest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"
)

// Kind is what an executor asks for.
type Kind string

// The kinds of calls.
const (
	Register       Kind = "register"
	RegisterDirect Kind = "direct/register"
	Validate       Kind = "validate"
	Upgrade        Kind = "upgrade" // of the socket
	Unknown        Kind = "unknown"
)

// Call is a request as it arrived.
type Call struct {
	Kind          Kind
	EnvironmentID string
	Method        string
	URI           string // the path and the query
	Host          string
	Header        http.Header
	Body          string
	At            time.Time
	// Status is what was answered: 0 while nothing was, or the request was cut off.
	Status int
}

const (
	maxCalls = 4096
	maxBody  = 1 << 20
)

// note keeps a call, and returns how its status is told.
func (p *Peer) note(kind Kind, environmentID string, r *http.Request) (body []byte, answered func(status int)) {
	body, _ = io.ReadAll(io.LimitReader(r.Body, maxBody))
	c := &Call{kind, environmentID, r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(body), time.Now(), 0}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) >= maxCalls {
		p.calls = slices.Delete(p.calls, 0, maxCalls/2)
	}
	p.calls = append(p.calls, c)
	p.tell()
	return body, func(status int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		c.Status = status
		p.tell()
	}
}

// Calls returns what has arrived for an environment, of these kinds or of any if
// none is given. Of very many, the oldest are forgotten.
func (p *Peer) Calls(environmentID string, kinds ...Kind) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callsOf(environmentID, kinds)
}

func (p *Peer) callsOf(environmentID string, kinds []Kind) []Call {
	var found []Call
	for _, c := range p.calls {
		if c.EnvironmentID == environmentID && (len(kinds) == 0 || slices.Contains(kinds, c.Kind)) {
			found = append(found, *c)
		}
	}
	return found
}

// AwaitCalls waits for the nth call of a kind, and returns all of them.
func (p *Peer) AwaitCalls(ctx context.Context, environmentID string, kind Kind, n int) (found []Call, err error) {
	err = p.await(ctx, func() bool {
		found = p.callsOf(environmentID, []Kind{kind})
		return len(found) >= n
	})
	return found, err
}

// ForgetCalls forgets the calls and the oddities of all environments.
func (p *Peer) ForgetCalls() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.odd = nil, nil
}

// Odd tells of what executors have sent that no executor sends: messages that are
// no frames, kinds of frames that are a harness's, registrations without sense. A
// test that expects none says so.
func (p *Peer) Odd() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.odd)
}

func (p *Peer) strange(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.odd) < maxCalls {
		p.odd = append(p.odd, what)
	}
}
