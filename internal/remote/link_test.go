package remote

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/remote/registry"
)

func hold(d time.Duration) func(int, *websocket.Conn) {
	return func(_ int, ws *websocket.Conn) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		_, _, _ = ws.Read(ctx)
	}
}

// gaps are the times between events of a kind.
func (w *world) gaps(kind string) (gaps []time.Duration) {
	last := time.Duration(-1)
	for _, e := range strings.Split(w.noted(), ", ") {
		at, what, _ := strings.Cut(e, " ")
		if !strings.HasPrefix(what, kind) {
			continue
		}
		d, err := time.ParseDuration(at)
		if err != nil {
			w.t.Fatal(err)
		}
		if last >= 0 {
			gaps = append(gaps, d-last)
		}
		last = d
	}
	return gaps
}

func (w *world) expectGaps(kind string, bounds ...[2]time.Duration) {
	w.t.Helper()
	gaps := w.gaps(kind)
	if len(gaps) < len(bounds) {
		w.t.Fatalf("the gaps are %v", gaps)
	}
	for i, b := range bounds {
		if gaps[i] < b[0]-time.Second/2 || gaps[i] > b[1]+time.Second/2 { // they are rounded
			w.t.Errorf("gap %d is %s, not from %s to %s: %v", i, gaps[i], b[0], b[1], gaps)
		}
	}
}

const second = time.Second

func TestLostSocketsAreReplaced(t *testing.T) {
	inWorld(t, Noise, func(w *world, _ *Options) { w.socket = hold(0) }, func(w *world) {
		time.Sleep(3 * time.Minute)
		w.expectGaps("socket", [2]time.Duration{second / 2, second}, [2]time.Duration{second, 2 * second}, [2]time.Duration{2 * second, 4 * second},
			[2]time.Duration{4 * second, 8 * second}, [2]time.Duration{8 * second, 16 * second}, [2]time.Duration{15 * second, 30 * second}, [2]time.Duration{15 * second, 30 * second})
		if n := w.registrations(); n != 1 {
			t.Errorf("%d registrations", n)
		}
		if s := w.link.Status(); s.Reconnects < 7 || s.LastError == "" || s.LastErrorAt.IsZero() {
			t.Errorf("the status is %+v", s)
		}
	})
	for held, again := range map[time.Duration]bool{118 * second: false, 122 * second: true} {
		inWorld(t, Noise, func(w *world, _ *Options) {
			w.socket = func(n int, ws *websocket.Conn) {
				if n == 4 {
					hold(held)(n, ws)
				}
			}
		}, func(w *world) {
			time.Sleep(4 * time.Minute)
			bounds := [2]time.Duration{held + 4*second, held + 8*second}
			if again {
				bounds = [2]time.Duration{held + second/2, held + second}
			}
			w.expectGaps("socket", [2]time.Duration{0, second}, [2]time.Duration{0, 2 * second}, [2]time.Duration{0, 4 * second}, bounds)
		})
	}
}

func TestASocketWithoutPongs(t *testing.T) {
	inWorld(t, Noise, func(w *world, _ *Options) {
		w.socket = func(int, *websocket.Conn) { <-w.over } // reads nothing
	}, func(w *world) {
		time.Sleep(95 * second)
		if got := w.noted(); !regexp.MustCompile(`^0s register, 0s socket at /1\?sig=secret, 9[01]s socket at /1\?sig=secret$|, 1m3[01]s socket`).MatchString(got) {
			t.Error(got)
		}
		if s := w.link.Status(); s.LastError != "the socket to the rendezvous ended: no answer to pings within 60 s" {
			t.Errorf("the status is %+v", s)
		}
	})
}

func TestARefusedUpgrade(t *testing.T) {
	inWorld(t, Noise, func(w *world, _ *Options) {
		w.upgrade = func(n int) int { return []int{403, 503, 302, 404, 0}[n-1] }
	}, func(w *world) {
		time.Sleep(time.Minute)
		got := w.noted()
		re := `^0s register, 0s refused 403 at /1, 0s register, 1s refused 503 at /2, [23]s refused 302 at /2, \d+s refused 404 at /2, (\d+s) register, (\d+)s socket at /3\?sig=secret$`
		if !regexp.MustCompile(re).MatchString(got) {
			t.Errorf("got %s", got)
		}
		if s := w.link.Status(); s.State != Connected || s.Reconnects != 0 || s.Since.IsZero() ||
			s.LastError != "connect to the rendezvous: the upgrade to a WebSocket was refused (404 Not Found): unknown_route" {
			t.Errorf("the status is %+v", s)
		}
		if log := w.log.String(); strings.Contains(log, "secret") {
			t.Errorf("the log tells the URL: %s", log)
		}
	})
}

func TestARegistrationThatHasToWait(t *testing.T) {
	inWorld(t, Noise, func(w *world, _ *Options) {
		w.register = func(n int) error {
			switch n {
			case 1:
				return errGone
			case 2:
				return &registry.Error{Status: http.StatusServiceUnavailable, Message: "later"}
			case 3:
				return &registry.Error{Status: http.StatusTooManyRequests, Message: "slower", RetryAfter: 100 * second}
			case 4:
				return &registry.Error{Status: http.StatusTooManyRequests, RetryAfter: 100 * time.Hour}
			case 5:
				return &registry.Error{Status: http.StatusRequestTimeout}
			}
			return nil
		}
	}, func(w *world) {
		time.Sleep(4 * second)
		if s := w.link.Status(); s.State != Disconnected || s.LastError == "" {
			t.Errorf("the status is %+v", s)
		}
		time.Sleep(2 * time.Hour)
		w.expectGaps("register", [2]time.Duration{second / 2, second}, [2]time.Duration{second, 3 * second / 2}, [2]time.Duration{100 * second, 100 * second},
			[2]time.Duration{time.Hour, time.Hour}, [2]time.Duration{8 * second, 12 * second})
		if s := w.link.Status(); s.State != Connected {
			t.Errorf("the status is %+v", s)
		}
	})
}

func TestARefusedRegistration(t *testing.T) {
	refused := func(n int) error {
		if n == 3 {
			return nil
		}
		return &registry.Error{Status: http.StatusForbidden, Message: "no such key"}
	}
	inWorld(t, Noise, func(w *world, _ *Options) { w.register = refused }, func(w *world) {
		time.Sleep(4 * time.Minute)
		if got := w.noted(); got != "0s register" {
			t.Error(got)
		}
		if s := w.link.Status(); s.State != Failed || !strings.Contains(s.LastError, "no such key") || time.Until(s.NextTry) < second || time.Until(s.NextTry) > 3*time.Minute {
			t.Errorf("the status is %+v", s)
		}
		time.Sleep(3 * time.Minute)
		if n := w.registrations(); n != 2 { // slowly
			t.Errorf("%d registrations", n)
		}
		w.noted()
		close(w.changed)
		if got := w.noted(); got != "7m0s register, 7m0s socket at /3?sig=secret" {
			t.Error(got)
		}
		if s := w.link.Status(); !s.NextTry.IsZero() {
			t.Errorf("the status is %+v", s)
		}
	})
	inWorld(t, Noise, func(w *world, o *Options) { w.register, o.ExitOnRefusal = refused, true }, func(w *world) {
		if err := w.awaitEnd(); err == nil || !strings.Contains(err.Error(), "no such key") {
			t.Error(err)
		}
		if s := w.link.Status(); s.State != Stopped {
			t.Errorf("the status is %+v", s)
		}
	})
}

func TestTheOwnerOfTheCredentialLeaves(t *testing.T) {
	for _, wrong := range []error{nil, errors.New("a malformed line")} {
		for _, connected := range []bool{true, false} {
			inWorld(t, Noise, func(w *world, _ *Options) {
				w.ownErr = wrong
				if !connected {
					w.register = func(int) error { return errGone }
				}
			}, func(w *world) {
				time.Sleep(time.Minute)
				close(w.owner)
				if err := w.awaitEnd(); !errors.Is(err, wrong) {
					t.Error(err)
				}
			})
		}
	}
	inWorld(t, Noise, nil, func(w *world) {
		time.Sleep(time.Minute)
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestDirectSockets(t *testing.T) {
	var delays []string
	for range 2 {
		inWorld(t, Direct, func(w *world, _ *Options) {
			w.upgrade = func(n int) int { return []int{0, 429, 408, 409, 500, 0, 0, 0}[min(n, 8)-1] }
			w.socket = func(n int, ws *websocket.Conn) {
				_ = ws.Write(context.Background(), websocket.MessageText, []byte("hello"))
				kind, text, err := ws.Read(context.Background())
				if err != nil || kind != websocket.MessageText || string(text) != "hello" {
					t.Errorf("got %q, %v", text, err)
				}
				if s := w.link.Status(); s.Streams != 1 || s.State != Connected {
					t.Errorf("the status is %+v", s)
				}
				if n >= 8 {
					<-w.over
				}
			}
		}, func(w *world) {
			time.Sleep(time.Minute)
			got := w.noted()
			re := `^0s register, 0s socket at /1\S+, 1s refused 429 at /1, [23]s refused 408 at /1, [3456]s refused 409 at /1, [3456]s register, \d+s refused 500 at /2, \d+s socket at /2\S+, \d+s socket at /2\S+, \d+s socket at /2\S+$`
			if !regexp.MustCompile(re).MatchString(got) {
				t.Errorf("got %s", got)
			}
			delays = append(delays, got)
		})
	}
	if delays[0] != delays[1] {
		t.Errorf("delays differ:\n%s\n%s", delays[0], delays[1])
	}
}

// Every change of state is one line.
func TestTheLog(t *testing.T) {
	inWorld(t, Noise, func(w *world, _ *Options) {
		w.register = func(n int) error {
			if n == 1 {
				return &registry.Error{Status: 401, Message: "who are you"}
			}
			return nil
		}
		w.socket = func(n int, ws *websocket.Conn) {
			if n > 1 {
				hold(time.Hour)(n, ws)
			}
		}
	}, func(w *world) {
		synctest.Wait()
		close(w.changed)
		time.Sleep(10 * second)
		if err := w.end(); err != nil {
			t.Error(err)
		}
		var states []string
		for line := range strings.Lines(w.log.String()) {
			states = append(states, regexp.MustCompile(`"state":"(\w+)"`).FindStringSubmatch(line)[1])
		}
		if got := strings.Join(states, " "); got != "registering failed registering connecting connected disconnected connecting connected stopped" {
			t.Errorf("got %s\n%s", got, w.log.String())
		}
	})
}
