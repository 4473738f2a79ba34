package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/gateway"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/credential"
)

func TestAnEnvironmentIsServedUnderItsName(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		e := entry("a")
		e.Settings.Profile = "other"
		add(t, fl, e)
		p := w.link("a").plan
		if p.Settings.EnvironmentID != "a" || p.Settings.Transport != "noise" || p.ExitOnRefusal {
			t.Errorf("the plan is %+v", p)
		}
		p.Serve(context.Background(), nil, proto.Hello{Peer: "relay"})
		if len(w.served) != 1 || w.served[0] != "a relay" {
			t.Errorf("served are %q", w.served)
		}
		if fl.Profile("a") != "other" || fl.Profile("b") != "" {
			t.Errorf("the profiles are %q, %q", fl.Profile("a"), fl.Profile("b"))
		}
		list := fl.List()
		if len(list) != 1 || list[0].Name != "a" || list[0].Status.State != remote.Connected || list[0].Status.Reconnects != 3 || !list[0].Kept {
			t.Errorf("the list is %+v", list)
		}
	})
}

func TestNamesAndAddressesAreUnique(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		add(t, fl, entry("a"))
		same := entry("b")
		same.Settings.EnvironmentID, same.Settings.Remote = "a", "https://r.example//"
		for want, e := range map[string]Entry{
			"there is an environment a already":                  entry("a"),
			"environment a has that id at that registry already": same,
			`"-" is no name`:                                     entry("-"),
			"remote is missing":                                  {Name: "c"},
			"there is no key for the registry":                   {Name: "c", Settings: config.Environment{Remote: "https://r.example"}},
			"proxy: its user and password would be written down": {Name: "c", Origin: Added, Settings: config.Environment{Remote: "https://r.example", Way: config.Way{Proxy: "u:p@h"}}},
		} {
			if _, err := fl.Add(context.Background(), e); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, and not %s", err, want)
			}
		}
		other := entry("b")
		other.Settings.EnvironmentID, other.Settings.Remote = "a", "https://s.example"
		add(t, fl, other)
		if len(fl.List()) != 2 {
			t.Errorf("there are %+v", fl.List())
		}
	})
}

func TestWhatCannotBeConnectedIsNotAdded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		w.set(func() { w.refusal = errNo })
		if _, err := fl.Add(context.Background(), entry("a")); !errors.Is(err, errNo) {
			t.Error(err)
		}
		w.set(func() { w.refusal, w.hang = nil, true })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := fl.Add(ctx, entry("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		w.set(func() { w.hang = false })
		if len(fl.List()) != 0 {
			t.Errorf("there are %+v", fl.List())
		}
		add(t, fl, entry("a"))
	})
}

// What has been decided on is tried again, and the others are served meanwhile.
func TestWhatCannotBeStartedIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		w.set(func() { w.refusal = errNo })
		wrong := entry("wrong")
		wrong.Settings.Profile = "none"
		fl.Start(entry("a"), wrong)
		synctest.Wait()
		for _, i := range fl.List() {
			if i.Status.State != remote.Failed || i.Status.LastError == "" || i.Status.LastErrorAt.IsZero() || !i.Status.NextTry.After(i.Status.LastErrorAt) {
				t.Errorf("it is %+v", i.Status)
			}
		}
		w.set(func() { w.refusal = nil })
		add(t, fl, entry("b"))
		time.Sleep(retryAfter + time.Second)
		synctest.Wait()
		list := fl.List()
		if len(list) != 3 || list[0].Status.State != remote.Connected || list[0].Status.LastError != "" || list[1].Status.State != remote.Connected {
			t.Errorf("there are %+v", list)
		}
		if list[2].Status.State != remote.Failed || !strings.Contains(list[2].Status.LastError, "there is no [profile.none]") {
			t.Errorf("what is wrong is %+v", list[2].Status)
		}
	})
}

func TestTheEnvironmentOfTheCommandLineIsNotRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, fl *Fleet) {
		e := entry("a")
		e.Origin = CommandLine
		m := add(t, fl, e)
		if err := fl.Remove(context.Background(), "a"); !errors.Is(err, errServed) {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case <-m.Done():
			t.Error("it has ended")
		default:
		}
	})
}

func TestTheEndOfALinkIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		e := entry("a")
		e.Origin, e.ExitOnRefusal = CommandLine, true
		m := add(t, fl, e)
		left := add(t, fl, entry("left"))
		other := add(t, fl, entry("other"))
		w.link("a").end <- errNo
		w.link("left").end <- nil
		<-m.Done()
		<-left.Done()
		if !errors.Is(m.Err(), errNo) || left.Err() != nil || !w.link("a").plan.ExitOnRefusal {
			t.Errorf("they end with %v, %v", m.Err(), left.Err())
		}
		select {
		case <-other.Done():
			t.Error("another ends with it")
		default:
		}
		list := fl.List()
		if list[0].Status.State != remote.Stopped || list[0].Status.LastError != "no" || list[1].Status.State != remote.Stopped || list[2].Status.State != remote.Connected {
			t.Errorf("there are %+v", list)
		}
	})
}

func TestRemove(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		m := add(t, fl, entry("a"))
		add(t, fl, entry("idle"))
		add(t, fl, entry("b"))
		w.set(func() { w.living["a"], w.living["b"], w.living["listener"] = true, true, true })
		for _, name := range []string{"a", "idle", "listener"} {
			if err := fl.Remove(context.Background(), name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := fl.Remove(context.Background(), name); !errors.Is(err, gateway.ErrUnknown) {
				t.Errorf("%s again: %v", name, err)
			}
		}
		<-m.Done()
		if list := fl.List(); len(list) != 1 || list[0].Name != "b" || strings.Join(w.removed, " ") != "a listener" {
			t.Errorf("there are %+v; removed are %q", list, w.removed)
		}
		w.set(func() { w.unremove = errNo })
		if err := fl.Remove(context.Background(), "b"); !errors.Is(err, errNo) {
			t.Error(err)
		}
		w.set(func() { w.unremove = nil })
		if err := fl.Remove(context.Background(), "b"); err != nil || len(fl.List()) != 0 {
			t.Errorf("%v; there are %+v", err, fl.List())
		}
		add(t, fl, entry("a"))
	})
}

func TestCloseEndsAllLinks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		w.set(func() { w.refusal = errNo })
		fl.Start(entry("failed"))
		synctest.Wait()
		w.set(func() { w.refusal = nil })
		a := add(t, fl, entry("a"))
		if err := fl.Close(context.Background()); err != nil {
			t.Error(err)
		}
		<-a.Done()
		if _, err := fl.Add(context.Background(), entry("b")); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		fl.Start(entry("b"))
		if len(fl.List()) != 2 {
			t.Errorf("there are %+v", fl.List())
		}
	})
}

// Connect checks what it can without a registry.
func TestConnectRefusesWhatIsWrong(t *testing.T) {
	t.Setenv("FLEET_TEST_KEY", "")
	cfg := config.Default()
	for want, e := range map[string]config.Environment{
		"bearer token in FLEET_TEST_KEY: it is empty": {Remote: "https://r", Key: config.Key{KeyEnv: "FLEET_TEST_KEY"}},
		"https":          {Remote: "http://r.example", Key: config.Key{KeyFile: "/x"}},
		"/absent/ca.pem": {Remote: "https://r", Key: config.Key{KeyFile: "/x"}, Way: config.Way{CAFile: "/absent/ca.pem"}},
	} {
		settings, err := cfg.Complete("a", e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Connect(t.Context(), Plan{Name: "a", Settings: settings}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %s", err, want)
		}
	}
	key, err := credential.APIKey("k")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := cfg.Complete("a", config.Environment{Remote: "https://r.example"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(t.Context(), Plan{Settings: settings, Source: key}); err == nil || !strings.Contains(err.Error(), "openai.com") {
		t.Errorf("a key of OpenAI's goes elsewhere: %v", err)
	}
}
