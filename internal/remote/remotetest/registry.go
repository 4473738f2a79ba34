package remotetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/exec-server/exec-server/internal/remote/noise"
)

const (
	noiseProfile    = "noise_hybrid_ik_v1"
	directTransport = "direct_jsonrpc_v1"
)

// grant is that a harness may open a stream.
type grant struct {
	environmentID, registration, streamID string
	key                                   string // of the harness, in JSON
}

// handle tells requests apart. The base URL may have a path.
func (p *Peer) handle(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.work.Done()
	if id, ok := strings.CutPrefix(r.URL.Path, "/rendezvous/"); ok {
		p.upgrade(w, r, id)
		return
	}
	_, rest, _ := strings.Cut(r.URL.Path, "/cloud/environment/")
	id, what, _ := strings.Cut(rest, "/")
	kind := Kind(what)
	if r.Method != http.MethodPost || kind != Register && kind != RegisterDirect && kind != Validate {
		_, answered := p.note(Unknown, id, r)
		p.strange(r.Method + " " + r.RequestURI)
		answered(http.StatusNotFound)
		refuse(w, http.StatusNotFound, "not_found", "there is no such thing", "")
		return
	}
	body, answered := p.note(kind, id, r)
	plan := func(f *Faults) *Plan { return &f.Register }
	if kind == Validate {
		plan = func(f *Faults) *Plan { return &f.Validate }
	}
	if p.fails(w, r, id, plan, answered) {
		return
	}
	var answer map[string]any
	var err error
	switch kind {
	case Register:
		answer, err = p.register(id, body)
	case RegisterDirect:
		answer, err = p.registerDirect(id, body)
	default:
		answer = p.validate(id, body, r.Header.Get("x-codex-noise-stream-id"))
	}
	if err != nil {
		p.strange(err.Error())
		answered(http.StatusBadRequest)
		refuse(w, http.StatusBadRequest, "bad_request", err.Error(), "")
		return
	}
	if change := p.look(id).Answer; change != nil {
		change(kind, answer)
	}
	text, _ := json.Marshal(answer)
	w.Header().Set("Content-Type", "application/json")
	answered(http.StatusOK)
	_, _ = w.Write(text)
}

func (p *Peer) register(id string, body []byte) (map[string]any, error) {
	var in struct {
		Profile string          `json:"security_profile"`
		Key     noise.PublicKey `json:"executor_public_key"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Profile != noiseProfile {
		return nil, fmt.Errorf("a registration for %q: %v", in.Profile, err)
	}
	registration := p.enter(&environment{id: id, key: in.Key})
	return map[string]any{
		"environment_id": id, "url": p.socketURL(id, registration),
		"security_profile": noiseProfile, "executor_registration_id": registration,
	}, nil
}

func (p *Peer) registerDirect(id string, body []byte) (map[string]any, error) {
	var in struct {
		Transport string `json:"transport"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Transport != directTransport {
		return nil, fmt.Errorf("a registration for %q: %v", in.Transport, err)
	}
	registration := p.enter(&environment{id: id, direct: true})
	return map[string]any{
		"environment_id": id, "url": p.socketURL(id, registration),
		"transport": directTransport, "registration_id": registration,
	}, nil
}

// enter books a registration. A socket of an earlier one stays.
func (p *Peer) enter(e *environment) (registration string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbered++
	e.registration = fmt.Sprint("registration-", p.numbered)
	if old := p.envs[e.id]; old != nil {
		e.socket, e.sockets = old.socket, old.sockets
	}
	p.envs[e.id] = e
	return e.registration
}

func (p *Peer) socketURL(id, registration string) string {
	return strings.Replace(p.URL, "http", "ws", 1) + "/rendezvous/" + id + "?role=environment&sig=" + registration
}

// validate compares with what was granted, to the last detail.
func (p *Peer) validate(id string, body []byte, streamID string) map[string]any {
	var in struct {
		Registration  string          `json:"executor_registration_id"`
		Key           json.RawMessage `json:"harness_public_key"`
		Authorization string          `json:"harness_key_authorization"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		p.strange("a validation: " + err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g, granted := p.grants[in.Authorization]
	valid := granted && g == grant{id, in.Registration, streamID, string(in.Key)} && !p.faultsOf(id).Invalid
	return map[string]any{"valid": valid}
}
