package remote_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/registry"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// headers are a call's, without the ones that differ each time.
func headers(c remotetest.Call) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.Header)) {
		if name != "Content-Length" && name != "Sec-Websocket-Key" {
			lines = append(lines, strings.ToLower(name)+": "+strings.Join(c.Header[name], ","))
		}
	}
	return strings.Join(lines, "\n")
}

const jsonHeaders = "accept: */*\naccept-encoding: zstd,gzip\nauthorization: Bearer " + key + "\ncontent-type: application/json"

func TestWhatGoesOverTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	opts := r.options("env-1", remote.Noise)
	// The base URL may have a path, and slashes at its end; the id may have blanks.
	opts.Registry = &registry.Client{Base: r.peer.URL + "/base/path//", EnvironmentID: " env-1 ", Credential: opts.Credential, HTTP: r.http}
	r.start(opts)
	h := r.open("env-1", "")
	h.alive()
	calls := r.peer.Calls("env-1")
	if len(calls) != 3 {
		t.Fatalf("%d calls have come", len(calls))
	}
	register, upgrade, validate := calls[0], calls[1], calls[2]

	if register.Kind != remotetest.Register || register.URI != "/base/path/cloud/environment/env-1/register" || headers(register) != jsonHeaders {
		t.Errorf("it registers at %s with\n%s", register.URI, headers(register))
	}
	var body struct {
		Key struct {
			X25519 string `json:"x25519_public_key"`
			MLKEM  string `json:"mlkem768_public_key"`
		} `json:"executor_public_key"`
	}
	if err := json.Unmarshal([]byte(register.Body), &body); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"security_profile":"noise_hybrid_ik_v1","executor_public_key":{"suite":"Noise_hybridIK_X25519+MLKEM768_AESGCM_SHA256","x25519_public_key":"%s","mlkem768_public_key":"%s"}}`, body.Key.X25519, body.Key.MLKEM)
	if register.Body != want {
		t.Errorf("it registers with %s", register.Body)
	}
	for text, size := range map[string]int{body.Key.X25519: 32, body.Key.MLKEM: 1184} {
		if b, err := base64.StdEncoding.DecodeString(text); err != nil || len(b) != size {
			t.Errorf("a key has %d bytes, not %d: %v", len(b), size, err)
		}
	}

	id := upgrade.Header.Get("X-Request-Id")
	if !regexp.MustCompile(`^req_[0-9a-f]{32}$`).MatchString(id) {
		t.Errorf("x-request-id: %s", id)
	}
	if got, want := headers(upgrade), "connection: Upgrade\nsec-websocket-version: 13\nupgrade: websocket\nx-request-id: "+id; got != want {
		t.Errorf("it connects with\n%s", got)
	}
	if want := "/rendezvous/env-1?role=environment&sig=" + r.peer.Registration("env-1"); upgrade.URI != want {
		t.Errorf("it connects to %s, not to %s", upgrade.URI, want)
	}

	stream := validate.Header.Get("x-codex-noise-stream-id")
	if got, want := headers(validate), jsonHeaders+"\nx-codex-noise-stream-id: "+stream; got != want || len(stream) != 36 {
		t.Errorf("it validates with\n%s", got)
	}
	if want := "/base/path/cloud/environment/env-1/validate"; validate.URI != want {
		t.Errorf("it validates at %s", validate.URI)
	}
	re := `^\{"executor_registration_id":"` + r.peer.Registration("env-1") + `","harness_public_key":\{"suite":"Noise_hybridIK_X25519\+MLKEM768_AESGCM_SHA256","x25519_public_key":"[^"]+","mlkem768_public_key":"[^"]+"\},"harness_key_authorization":"authorization-\d+"\}$`
	if !regexp.MustCompile(re).MatchString(validate.Body) {
		t.Errorf("it validates %s", validate.Body)
	}

	if odd := r.peer.Odd(); odd != nil {
		t.Error(strings.Join(odd, "\n"))
	}
}

// The next attempts have other ids, and the same key and registration.
func TestWhatGoesOverTheWireAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.noise("e")
		for n := range 3 {
			if err := r.peer.AwaitSocket(t.Context(), "e", n+1); err != nil {
				t.Fatal(err)
			}
			r.peer.Cut("e", remotetest.CutEnd)
		}
		upgrades, err := r.peer.AwaitCalls(t.Context(), "e", remotetest.Upgrade, 3)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, u := range upgrades {
			ids[u.Header.Get("X-Request-Id")] = true
			if u.URI != upgrades[0].URI {
				t.Errorf("it connects to %s, and then to %s", upgrades[0].URI, u.URI)
			}
		}
		if len(ids) != 3 {
			t.Errorf("three attempts have %d request ids", len(ids))
		}
		r.peer.Set("e", func(f *remotetest.Faults) { f.Upgrade = remotetest.Plan{Status: 404, Count: 1} })
		registers, err := r.peer.AwaitCalls(t.Context(), "e", remotetest.Register, 2)
		if err != nil || registers[1].Body != registers[0].Body || headers(registers[1]) != headers(registers[0]) {
			t.Errorf("it registers again, %v, with %v", err, registers)
		}
		r.open("e", "").alive()
		if odd := r.peer.Odd(); odd != nil {
			t.Error(strings.Join(odd, "\n"))
		}
	})
}

// Reconnecting resumes nothing by itself: harnesses resume their sessions.
func TestSessionsOutliveSockets(t *testing.T) {
	for _, how := range []remotetest.Cut{remotetest.CutClose, remotetest.CutEnd, remotetest.CutAbort} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			l := r.noise("e")
			one, two := r.open("e", ""), r.open("e", "")
			id := one.start("echo before; sleep 1000")
			two.alive()
			if !r.peer.Cut("e", how) {
				t.Fatal("there is no socket")
			}
			await(t, one.c.Done(), "the end of a connection")
			await(t, two.c.Done(), "the end of another")
			if err := r.peer.AwaitSocket(soon(t), "e", 2); err != nil {
				t.Fatal(err)
			}
			for _, old := range []*harness{one, two} {
				h := r.open("e", old.session)
				if h.session != old.session {
					t.Errorf("session %s becomes %s", old.session, h.session)
				}
				if old == one {
					v, err := h.call("process/read", map[string]any{"processId": id, "waitMs": 30000})
					if text, _ := base64.StdEncoding.DecodeString(v.Get("chunks").At(0).Get("chunk").Str()); err != nil || string(text) != "before\n" {
						t.Errorf("the process has printed %q, %v", text, err)
					}
				}
			}
			if s := l.Status(); s.State != remote.Connected || s.Reconnects != 1 || s.Streams != 2 || s.LastError == "" {
				t.Errorf("the status is %+v", s)
			}
			if n := len(r.peer.Calls("e", remotetest.Register)); n != 1 {
				t.Errorf("%d registrations", n)
			}
		})
	}
}

// All streams of several environments are busy at once, and nobody hears what
// another one said.
func TestManyStreamsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	done := make(chan struct{})
	const environments, streams = 3, 4
	for e := range environments {
		id := fmt.Sprint("env-", e)
		r.noise(id)
		for s := range streams {
			h := r.open(id, "")
			go func() {
				mark := fmt.Sprintf("<%s/%d>", id, s)
				for round := range 3 {
					want := strings.Repeat(mark, 2000)
					if got := h.sh(fmt.Sprintf(`i=0; while test $i -lt 2000; do printf '%%s' '%s'; i=$((i+1)); done`, mark)); got != want {
						t.Errorf("%s hears %d bytes that are not its own in round %d: %.60q", mark, len(got), round, got)
					}
				}
				done <- struct{}{}
			}()
		}
	}
	for range environments * streams {
		await(t, done, "the end of a stream's work")
	}
	if odd := r.peer.Odd(); odd != nil {
		t.Error(strings.Join(odd, "\n"))
	}
}
