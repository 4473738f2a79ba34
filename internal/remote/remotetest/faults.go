package remotetest

import (
	"encoding/json"
	"net/http"
	"time"
)

// Faults say what goes wrong for an environment. The zero value is a peer that
// works.
type Faults struct {
	Register, Validate, Upgrade Plan
	// Answer, if not nil, may change the answers to registrations and validations
	// that go well. It is called with no lock held.
	Answer func(kind Kind, answer map[string]any)
	// Invalid has validations answered with valid: false.
	Invalid bool
	// WrongExecutorKey has harnesses greet the owner of another key than the
	// executor's; WrongHarnessKey has them use another than the registry vouches for.
	WrongExecutorKey, WrongHarnessKey bool
	// ToExecutor and FromExecutor are what happens to frames on their way.
	ToExecutor, FromExecutor Way
	// NoPongs leaves the executor's pings without an answer.
	NoPongs bool
	// Chunk is how many bytes of plaintext harnesses put into a record: 61440 if it
	// is 0 or more than that.
	Chunk int
}

// Plan is how one kind of request fails: After requests are handled as usual, then
// Count are not, or all if it is 0.
type Plan struct {
	Status        int // 0: as usual, after the delay
	After, Count  int
	Code, Message string      // of the error object
	Body          string      // in place of the error object
	Header        http.Header // of the answer, such as retry-after
	Delay         time.Duration
	Hang          bool // there is no answer, until the other side leaves
	Abort         bool // the connection ends in place of an answer

	seen int
}

// next returns the plan for one more request: empty if it is to go well.
func (p *Plan) next() Plan {
	if p.Status == 0 && p.Delay == 0 && !p.Hang && !p.Abort {
		return Plan{}
	}
	p.seen++
	if p.seen <= p.After || p.Count > 0 && p.seen > p.After+p.Count {
		return Plan{}
	}
	return *p
}

// Set changes the faults of an environment; "" stands for all that have none of
// their own. Plans that are assigned begin anew.
func (p *Peer) Set(environmentID string, change func(*Faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults[environmentID] == nil {
		p.faults[environmentID] = &Faults{}
	}
	change(p.faults[environmentID])
}

// faultsOf returns the faults of an environment. The caller holds p.mu.
func (p *Peer) faultsOf(environmentID string) *Faults {
	for _, id := range []string{environmentID, ""} {
		if f := p.faults[id]; f != nil {
			return f
		}
	}
	return &Faults{}
}

// look returns a copy of the faults of an environment.
func (p *Peer) look(environmentID string) Faults {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.faultsOf(environmentID)
}

// fails carries out what is planned for a request. It returns false if that goes
// well.
func (p *Peer) fails(w http.ResponseWriter, r *http.Request, environmentID string, plan func(*Faults) *Plan, answered func(int)) bool {
	p.mu.Lock()
	f := plan(p.faultsOf(environmentID)).next()
	p.mu.Unlock()
	if f.Delay > 0 || f.Hang {
		late := make(<-chan time.Time)
		if !f.Hang {
			timer := time.NewTimer(f.Delay)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-late:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-p.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
	if f.Abort {
		panic(http.ErrAbortHandler)
	}
	if f.Status == 0 {
		return false
	}
	for name, values := range f.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	answered(f.Status)
	refuse(w, f.Status, f.Code, f.Message, f.Body)
	return true
}

func refuse(w http.ResponseWriter, status int, code, message, body string) {
	if body == "" {
		w.Header().Set("Content-Type", "application/json")
		text, _ := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}})
		body = string(text)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}
