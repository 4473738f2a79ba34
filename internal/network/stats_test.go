package network

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestCountersAreBounded(t *testing.T) {
	c := newCounters()
	c.allow("early.test").add(in, 7)
	for i := range 1000 {
		c.deny(fmt.Sprintf("denied%d.test", i), rules.ByMode)
	}
	for i := range 1000 {
		c.allow(fmt.Sprintf("allowed%d.test", i)).add(out, 1)
	}
	c.allow("early.test").add(in, 1)
	s := c.read()
	if len(s.Names) != maxCounted {
		t.Errorf("%d names", len(s.Names))
	}
	if s.Total != (Count{Allowed: 1002, Denied: 1000, In: 8, Out: 1000}) || s.Denied[rules.ByMode] != 1000 {
		t.Errorf("%+v", s.Total)
	}
	if got := s.Names["early.test"]; got != (Count{Allowed: 2, In: 8}) {
		t.Errorf("early: %+v", got)
	}
	if got := s.Names[others]; got.Denied < 1000-maxRefused || got.Allowed < 1000-maxCounted {
		t.Errorf("others: %+v", got)
	}
	if _, ok := s.Names["allowed0.test"]; !ok {
		t.Error("what is denied takes the places of what is allowed")
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"pypi.org": "pypi.org", "2001:db8::1": "2001:db8::1", "a_b-c.test": "a_b-c.test",
		"a\nb": `"a\nb"`, "\x1b[31m": `"\x1b[31m"`, "é": `"\u00e9"`, "": "", `"`: `"\""`,
		strings.Repeat("a", 1000): strings.Repeat("a", maxLabel),
	} {
		if got := label(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestDenialsAreLoggedAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &strings.Builder{}
		d := newDenials(zerolog.New(log))
		lines := func() []string {
			defer log.Reset()
			return strings.Split(strings.TrimSpace(log.String()), "\n")
		}
		for i := range 100 {
			d.add(Denial{What: fmt.Sprintf("tcp 1.1.1.1:%d", i), Reason: rules.ByRule, Rule: 2}, nil)
		}
		first := lines()
		if len(first) != logBurst || first[0] != `{"level":"info","to":"tcp 1.1.1.1:0","reason":"rule","rule":3,"message":"network: denied"}` {
			t.Errorf("at first %q", first)
		}
		time.Sleep(time.Second)
		d.add(Denial{What: "lookup a.test", Reason: rules.ByMode, Rule: -1}, nil)
		d.add(Denial{What: "lookup b.test", Reason: rules.ByMode, Rule: -1}, nil)
		// What the operator has to mend is not lost among them.
		d.add(Denial{What: "http c.test", Reason: rules.NoSecret, Rule: 0}, errors.New("no file"))
		if got := lines(); len(got) != 2 || got[0] != `{"level":"info","suppressed":90,"to":"lookup a.test","reason":"mode","message":"network: denied"}` ||
			got[1] != `{"level":"warn","error":"no file","to":"http c.test","reason":"credential","rule":1,"message":"network: denied"}` {
			t.Errorf("after a second %q", got)
		}
		d.close()
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], `"suppressed":1,`) {
			t.Errorf("in the end %q", got)
		}
		if got := d.recent(); len(got) != maxDenials || got[0].What != "http c.test" || got[1].What != "lookup b.test" || got[maxDenials-1].What != "tcp 1.1.1.1:71" {
			t.Errorf("%+v", got)
		}
	})
}

// Name servers that are away leave a trace, though not a line for each lookup; the end
// of the way, which breaks lookups off, does not.
func TestLookupsThatFail(t *testing.T) {
	r := newRig(t, named)
	e := names.Event{Kind: names.Failed, Name: "one.test", Err: errors.New("ask 192.0.2.53:53: i/o timeout")}
	for range 100 {
		r.lookup(e)
	}
	if n := r.Stats().FailedLookups; n != 100 {
		t.Errorf("%d failed", n)
	}
	want := `{"level":"warn","error":"ask 192.0.2.53:53: i/o timeout","name":"one.test","message":"network: a lookup failed"}` + "\n"
	if got := r.log.String(); !strings.HasPrefix(got, want+want+want) || strings.Count(got, "\n") > 10 {
		t.Error(got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r.lookup(e); r.Stats().FailedLookups != 100 {
		t.Error("one that was broken off counts")
	}
}
