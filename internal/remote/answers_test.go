package remote_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// What the registry answers, and what is made of it: whether it is tried again
// soon or slowly, and what is told.
func TestAnswersToARegistration(t *testing.T) {
	type plan = remotetest.Plan
	const authentication = "environment registry authentication error: environment registry authentication failed "
	for name, tt := range map[string]struct {
		plan   plan
		answer func(map[string]any)
		state  remote.State
		says   string
		never  bool // it works again
	}{
		"400":  {plan: plan{Status: 400, Code: "bad", Message: "no"}, state: remote.Failed, says: "environment registry request failed (400 Bad Request, bad): no"},
		"401":  {plan: plan{Status: 401, Code: "c", Message: "who are you"}, state: remote.Failed, says: authentication + "(401 Unauthorized): who are you"},
		"403":  {plan: plan{Status: 403, Message: "not you"}, state: remote.Failed, says: authentication + "(403 Forbidden): not you"},
		"404":  {plan: plan{Status: 404, Code: "unknown", Message: "no such environment"}, state: remote.Failed, says: "environment registry request failed (404 Not Found, unknown): no such environment"},
		"text": {plan: plan{Status: 403, Body: "plain words"}, state: remote.Failed, says: authentication + "(403 Forbidden): plain words"},
		"long": {plan: plan{Status: 400, Body: strings.Repeat("é", 5000)}, state: remote.Failed, says: ": " + strings.Repeat("é", 4096)},
		"408":  {plan: plan{Status: 408}, state: remote.Disconnected},
		"409":  {plan: plan{Status: 409, Code: "taken", Message: "another is here"}, state: remote.Disconnected, says: "environment registry request failed (409 Conflict, taken): another is here"},
		"429":  {plan: plan{Status: 429, Code: "slow_down", Message: "wait"}, state: remote.Disconnected, says: "environment registry request failed (429 Too Many Requests, slow_down): wait"},
		"500":  {plan: plan{Status: 500}, state: remote.Disconnected},
		"502":  {plan: plan{Status: 502, Code: "authentication_service_unavailable"}, state: remote.Disconnected},
		"503":  {plan: plan{Status: 503}, state: remote.Disconnected},
		"cut":  {plan: plan{Abort: true}, state: remote.Disconnected},
		"mute": {plan: plan{Hang: true}, state: remote.Disconnected},

		"another environment": {answer: func(a map[string]any) { a["environment_id"] = "f" }, state: remote.Failed, says: "different environment id"},
		"another profile":     {answer: func(a map[string]any) { a["security_profile"] = "none" }, state: remote.Failed, says: "unsupported security profile `none`"},
		"no registration":     {answer: func(a map[string]any) { delete(a, "executor_registration_id") }, state: remote.Failed, says: "missing field `executor_registration_id`"},
		"a long URL":          {answer: func(a map[string]any) { a["url"] = strings.Repeat("a", 10000) + "://x" }, state: remote.Disconnected, says: strings.Repeat("a", 4000), never: true},
		"a useless URL":       {answer: func(a map[string]any) { a["url"] = "ftp://nowhere/" }, state: remote.Disconnected, says: "connect to the rendezvous", never: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.peer.Set("e", func(f *remotetest.Faults) {
					f.Register = tt.plan
					if tt.answer != nil {
						f.Answer = func(_ remotetest.Kind, a map[string]any) { tt.answer(a) }
					}
				})
				l := r.noise("e")
				time.Sleep(10*time.Second + time.Millisecond) // what a call may take
				synctest.Wait()
				if s := l.Status(); len(s.LastError) > 10000 {
					t.Errorf("it says %d bytes", len(s.LastError))
				} else if s.State != tt.state || !strings.HasSuffix(s.LastError, tt.says) && !strings.Contains(s.LastError, tt.says) || s.LastError == "" {
					t.Errorf("the state is %s: %s", s.State, s.LastError)
				}
				r.peer.Set("e", func(f *remotetest.Faults) { *f = remotetest.Faults{} })
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := l.Status().State; (got == remote.Connected) != (tt.state == remote.Disconnected && !tt.never) {
					t.Errorf("after a minute the state is %s", got)
				}
				time.Sleep(9 * time.Minute)
				synctest.Wait()
				if got := l.Status().State; (got == remote.Connected) == tt.never {
					t.Errorf("after ten minutes the state is %s", got)
				}
			})
		})
	}
}

// A registration without an answer may be booked after the next one. Harnesses then
// come for one that the link does not know.
func TestARegistrationThatIsBookedLate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.peer.Set("e", func(f *remotetest.Faults) {
			f.Register = remotetest.Plan{Abort: true, Count: 1}
			known := 0
			f.Answer = func(kind remotetest.Kind, a map[string]any) {
				if kind != remotetest.Register {
					return
				}
				if known++; known == 1 {
					a["executor_registration_id"] = "an earlier one"
				}
			}
		})
		l := r.noise("e")
		st, err := r.peer.Claim(soon(t), "e", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Open(soon(t)); err == nil {
			t.Fatal("a handshake for another registration goes well")
		}
		st.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.open("e", "").alive()
		if n := len(r.peer.Calls("e", remotetest.Register)); n != 3 {
			t.Errorf("%d registrations", n)
		}
		if s := l.Status(); s.Reconnects != 1 || !strings.HasSuffix(s.LastError, "the registry sends harnesses for another registration") {
			t.Errorf("the status is %+v", s)
		}
		// Now there is no doubt, so that a harness that is wrong harms itself alone.
		r.peer.Set("e", func(f *remotetest.Faults) { f.WrongExecutorKey = true })
		if st, err = r.peer.Claim(soon(t), "e", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Open(soon(t)); !errors.Is(err, remotetest.ErrReset) {
			t.Errorf("a wrong key: %v", err)
		}
		st.Close()
		if s := l.Status(); s.State != remote.Connected || s.Reconnects != 1 {
			t.Errorf("the status is %+v", s)
		}
	})
}

func TestExitOnRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.peer.Set("e", func(f *remotetest.Faults) { f.Register = remotetest.Plan{Status: 503, Count: 3} })
		opts := r.options("e", remote.Noise)
		opts.ExitOnRefusal = true
		l := r.start(opts)
		time.Sleep(time.Minute)
		if got := l.Status().State; got != remote.Connected {
			t.Errorf("what is no refusal is one: %s", got)
		}
		r.peer.Set("e", func(f *remotetest.Faults) {
			f.Upgrade = remotetest.Plan{Status: 403}
			f.Register = remotetest.Plan{Status: 404, Code: "gone", Message: "deleted"}
		})
		r.peer.Cut("e", remotetest.CutEnd)
		await(t, l.done, "the end of the link")
		if err := l.stop(); err == nil || err.Error() != "environment registry request failed (404 Not Found, gone): deleted (asked at 127.0.0.1:80)" {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.peer.Set("e", func(f *remotetest.Faults) {
			f.Register = remotetest.Plan{Status: 429, Count: 1, Header: http.Header{"Retry-After": {"77"}}}
		})
		start := time.Now()
		r.noise("e")
		if err := r.peer.AwaitSocket(t.Context(), "e", 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 77*time.Second || took > 78*time.Second {
			t.Errorf("it comes back after %s", took)
		}
	})
}

// A frozen peer: what it does not answer, and what it does not read, end the socket.
func TestAFrozenSocket(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.noise("e")
		h := r.open("e", "")
		h.alive()
		time.Sleep(45 * time.Second)
		if n := r.peer.Pings("e"); n != 1 {
			t.Errorf("%d pings in 45 s", n)
		}
		r.peer.Set("e", func(f *remotetest.Faults) { f.NoPongs = true })
		time.Sleep(70 * time.Second) // the ping after 60 s is not answered
		h.alive()
		time.Sleep(30 * time.Second)
		await(t, h.c.Done(), "the end of the connection")
		r.peer.Set("e", func(f *remotetest.Faults) { f.NoPongs = false })
		again := r.open("e", h.session)
		again.alive()
		r.peer.Cut("e", remotetest.CutFreeze)
		start := time.Now()
		if err := r.peer.AwaitSocket(t.Context(), "e", 3); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 95*time.Second {
			t.Errorf("it takes %s to notice", took)
		}
		synctest.Wait()
		if s := l.Status(); s.Reconnects != 2 {
			t.Errorf("the status is %+v", s)
		}
		r.open("e", "").alive()
	})
}

func TestAnUpgradeWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.peer.Set("e", func(f *remotetest.Faults) { f.Upgrade = remotetest.Plan{Hang: true, Count: 1} })
		start := time.Now()
		r.noise("e")
		if err := r.peer.AwaitSocket(t.Context(), "e", 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it comes after %s", took)
		}
		if n := len(r.peer.Calls("e", remotetest.Register)); n != 1 {
			t.Errorf("%d registrations", n)
		}
	})
}
