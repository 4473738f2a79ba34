package remotetest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/relay"
)

// executor is the least that one can be: it takes every handshake that the
// registry vouches for, and sends each record back, as often as it comes in order.
type executor struct {
	t            *testing.T
	peer         *Peer
	id           string
	key          *noise.KeyPair
	registration string
	ws           *websocket.Conn
	resets       chan relay.Frame

	mu    sync.Mutex // guards err, why the socket ended
	err   error
	ended chan struct{}
}

// post calls the registry.
func (x *executor) post(what, streamID string, in, out any) int {
	body, err := json.Marshal(in)
	if err != nil {
		x.t.Error(err)
	}
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, x.peer.URL+"/cloud/environment/"+x.id+"/"+what, bytes.NewReader(body))
	if err != nil {
		x.t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer key-of-"+x.id)
	if streamID != "" {
		r.Header.Set("x-codex-noise-stream-id", streamID)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil && resp.StatusCode == http.StatusOK {
		x.t.Error(err)
	}
	return resp.StatusCode
}

func newExecutor(t *testing.T, p *Peer, id string, direct bool) *executor {
	t.Helper()
	key, err := noise.GenerateKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	x := &executor{t: t, peer: p, id: id, key: key, resets: make(chan relay.Frame, 100), ended: make(chan struct{})}
	var answer struct {
		URL          string `json:"url"`
		Registration string `json:"executor_registration_id"`
	}
	status := 0
	if direct {
		status = x.post("direct/register", "", map[string]any{"transport": directTransport}, &answer)
	} else {
		status = x.post("register", "", map[string]any{"security_profile": noiseProfile, "executor_public_key": key.Public()}, &answer)
	}
	if status != http.StatusOK {
		t.Fatalf("the registration is answered with %d", status)
	}
	x.registration = answer.Registration
	if x.ws, _, err = websocket.Dial(t.Context(), answer.URL, nil); err != nil {
		t.Fatal(err)
	}
	x.ws.SetReadLimit(1 << 20)
	go x.serve(direct)
	t.Cleanup(func() {
		_ = x.ws.CloseNow()
		<-x.ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := p.AwaitSocket(ctx, id, 1); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *executor) send(f relay.Frame) {
	_ = x.ws.Write(context.Background(), websocket.MessageBinary, f.Append(nil))
}

func (x *executor) serve(direct bool) {
	defer close(x.ended)
	channels := map[string]*noise.Channel{}
	for {
		kind, message, err := x.ws.Read(context.Background())
		if err != nil {
			x.mu.Lock()
			x.err = err
			x.mu.Unlock()
			return
		}
		if direct {
			_ = x.ws.Write(context.Background(), kind, message)
			continue
		}
		f, err := relay.Parse(message)
		if err != nil {
			x.resets <- relay.Frame{Reason: string(message)}
			continue
		}
		switch c := channels[f.StreamID]; {
		case f.Kind == relay.Handshake:
			if channels[f.StreamID] = x.answer(f); channels[f.StreamID] == nil {
				x.send(relay.Frame{Kind: relay.Reset, StreamID: f.StreamID, Reason: "no"})
			}
		case f.Kind == relay.Data && c != nil:
			text, err := c.Open(nil, f.Payload)
			if err != nil {
				x.send(relay.Frame{Kind: relay.Reset, StreamID: f.StreamID, Reason: "no"})
				continue
			}
			record, _ := c.Seal(nil, text)
			x.send(relay.Frame{Kind: relay.Data, StreamID: f.StreamID, Seq: f.Seq, Payload: record})
		case f.Kind == relay.Reset:
			x.resets <- f
		}
	}
}

func (x *executor) answer(f relay.Frame) *noise.Channel {
	r, err := noise.ReadInitiation(x.key, noise.Prologue(x.id, x.registration, f.StreamID), f.Payload)
	if err != nil {
		return nil
	}
	var verdict struct{ Valid bool }
	status := x.post("validate", f.StreamID, map[string]any{
		"executor_registration_id": x.registration, "harness_public_key": r.Peer, "harness_key_authorization": string(r.Payload),
	}, &verdict)
	text := ""
	if status == http.StatusUnauthorized {
		text = rejected
	} else if !verdict.Valid {
		return nil
	}
	message, c, err := r.Answer([]byte(text))
	if err != nil {
		x.t.Error(err)
		return nil
	}
	x.send(relay.Frame{Kind: relay.Handshake, StreamID: f.StreamID, Payload: message})
	return c
}

// odd fails the test if the executor has done what none does.
func (x *executor) odd() {
	x.t.Helper()
	if odd := x.peer.Odd(); len(odd) > 0 {
		x.t.Error(strings.Join(odd, "\n"))
	}
}
