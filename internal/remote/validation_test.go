package remote_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/remote/relay"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// What becomes of handshakes that are not as they should be.
func TestHandshakesThatFail(t *testing.T) {
	type faults = remotetest.Faults
	type plan = remotetest.Plan
	inBubble(t, func(t *testing.T, r *rig) {
		r.noise("e")
		open := r.open("e", "")
		for _, tt := range []struct {
			name    string
			change  func(*faults)
			granted string // in place of an authorization that is good
			want    error
			asked   int // validations
		}{
			{"the credential is rejected", func(f *faults) { f.Validate = plan{Status: 401} }, "", remotetest.ErrRejected, 1},
			{"forbidden", func(f *faults) { f.Validate = plan{Status: 403} }, "", remotetest.ErrReset, 1},
			{"not found", func(f *faults) { f.Validate = plan{Status: 404} }, "", remotetest.ErrReset, 1},
			{"unavailable", func(f *faults) { f.Validate = plan{Status: 503} }, "", remotetest.ErrReset, 1},
			{"moved", func(f *faults) { f.Validate = plan{Status: 302} }, "", remotetest.ErrReset, 1},
			{"cut off", func(f *faults) { f.Validate = plan{Abort: true} }, "", remotetest.ErrReset, 1},
			{"no answer", func(f *faults) { f.Validate = plan{Hang: true} }, "", remotetest.ErrReset, 1},
			{"no JSON", func(f *faults) { f.Validate = plan{Status: 200, Body: "yes"} }, "", remotetest.ErrReset, 1},
			{"no verdict", func(f *faults) { f.Validate = plan{Status: 200, Body: "{}"} }, "", remotetest.ErrReset, 1},
			{"invalid", func(f *faults) { f.Invalid = true }, "", remotetest.ErrReset, 1},
			{"not the harness", func(f *faults) { f.WrongHarnessKey = true }, "", remotetest.ErrReset, 1},
			{"not the executor", func(f *faults) { f.WrongExecutorKey = true }, "", remotetest.ErrReset, 0},
			{"tampered with", func(f *faults) { f.ToExecutor.TamperHandshake = true }, "", remotetest.ErrReset, 0},
			{"made up", func(f *faults) {}, "made up", remotetest.ErrReset, 1},
			{"4096 bytes", func(f *faults) {}, strings.Repeat("x", 4096), remotetest.ErrReset, 1},
			{"4097 bytes", func(f *faults) {}, strings.Repeat("x", 4097), remotetest.ErrReset, 0},
			{"no text", func(f *faults) {}, "\xff", remotetest.ErrReset, 0},
		} {
			r.peer.ForgetCalls()
			r.peer.Set("e", func(f *faults) { *f = faults{}; tt.change(f) })
			st, err := r.peer.Claim(soon(t), "e", "")
			if err != nil {
				t.Fatal(err)
			}
			if tt.granted != "" {
				st.Authorization = tt.granted
			}
			start := time.Now()
			_, err = st.Open(soon(t))
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if errors.Is(err, remotetest.ErrReset) && !strings.HasSuffix(err.Error(), ": noise_relay_protocol_error") {
				t.Errorf("%s: it is told why: %v", tt.name, err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s: it takes %s", tt.name, took)
			}
			if n := len(r.peer.Calls("e", remotetest.Validate)); n != tt.asked {
				t.Errorf("%s: the registry is asked %d times", tt.name, n)
			}
			st.Close()
			r.peer.Set("e", func(f *faults) { *f = faults{} })
			r.peer.Cut("e", remotetest.CutEnd) // the next one has a budget of its own
			await(t, open.c.Done(), "the end of the connection")
			open = r.open("e", open.session)
		}
		open.alive()
	})
}

func TestTheBudgetOfFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.noise("e")
		open := r.open("e", "")
		refuse := func(on bool) {
			r.peer.Set("e", func(f *remotetest.Faults) { f.Validate = remotetest.Plan{Status: map[bool]int{true: 401}[on]} })
		}
		try := func() error {
			h, err := r.tryOpen("e", "")
			if err == nil {
				_ = h.c.Close()
			}
			return err
		}
		refuse(true)
		for range 7 {
			if err := try(); !errors.Is(err, remotetest.ErrRejected) {
				t.Fatal(err)
			}
		}
		refuse(false)
		if err := try(); err != nil {
			t.Fatalf("after seven failures: %v", err)
		}
		refuse(true)
		if err := try(); !errors.Is(err, remotetest.ErrRejected) {
			t.Fatal(err)
		}
		refuse(false)
		r.peer.ForgetCalls()
		for range 20 {
			if err := try(); !errors.Is(err, remotetest.ErrReset) {
				t.Errorf("in the pause: %v", err)
			}
		}
		if calls := r.peer.Calls("e"); len(calls) > 0 {
			t.Errorf("the registry is asked in the pause: %d times", len(calls))
		}
		open.alive()
		time.Sleep(10*time.Second - time.Millisecond)
		if err := try(); !errors.Is(err, remotetest.ErrReset) {
			t.Errorf("shortly before its end: %v", err)
		}
		time.Sleep(2 * time.Millisecond)
		if err := try(); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		refuse(true)
		for range 8 {
			_ = try()
		}
		refuse(false)
		r.peer.Cut("e", remotetest.CutEnd)
		await(t, open.c.Done(), "the end of the connection")
		if err := try(); err != nil {
			t.Errorf("another socket: %v", err)
		}
	})
}

func TestAsManyStreamsAndValidations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.noise("e")
	var all []*remotetest.Conn
	open := func() error {
		st, err := r.peer.Claim(soon(t), "e", "")
		if err != nil {
			t.Fatal(err)
		}
		c, err := st.Open(soon(t))
		if err != nil {
			st.Close()
			return err
		}
		all = append(all, c)
		return nil
	}
	for range 128 {
		if err := open(); err != nil {
			t.Fatalf("stream %d: %v", len(all), err)
		}
	}
	if err := open(); !errors.Is(err, remotetest.ErrReset) {
		t.Errorf("one more than 128: %v", err)
	}
	for _, c := range all[:64] {
		_ = c.Close()
	}
	all = all[:64]

	r.peer.Set("e", func(f *remotetest.Faults) { f.Validate = remotetest.Plan{Hang: true} })
	r.peer.ForgetCalls()
	var asking []*remotetest.Stream
	for i := range 33 {
		st, err := r.peer.Claim(soon(t), "e", "")
		if err != nil {
			t.Fatal(err)
		}
		message, err := st.Initiate()
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Send(relay.Frame{Kind: relay.Handshake, Payload: message}); err != nil {
			t.Fatal(err)
		}
		if i < 32 {
			asking = append(asking, st)
		} else if _, err := st.Finish(soon(t)); !errors.Is(err, remotetest.ErrReset) {
			t.Errorf("one more than 32 at once: %v", err)
		}
	}
	// All of them, or the plan would be carried out on one that comes later.
	if calls, err := r.peer.AwaitCalls(soon(t), "e", remotetest.Validate, 32); err != nil || len(calls) != 32 {
		t.Fatalf("the registry is asked %d times: %v", len(calls), err)
	}
	r.peer.Set("e", func(f *remotetest.Faults) { *f = remotetest.Faults{} })
	for _, st := range asking {
		st.Close() // which the executor takes for the end of the validation
	}
	for start := time.Now(); ; {
		err := open()
		if err == nil {
			break
		} else if time.Since(start) > patience {
			t.Fatal("validations that were dropped still count")
		} else if !errors.Is(err, remotetest.ErrReset) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
