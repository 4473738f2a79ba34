package policy

import (
	"reflect"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestAConfigurationArrives(t *testing.T) {
	want := Config{
		Domains: map[string]string{"a\"": "deny", "*": "allow"}, Limited: true, LocalOK: true, HTTP: true, SOCKS: true, UDP: true, Ask: true,
		Bridges: []uint16{1, 65535}, HTTPProxy: "http://u:p@x:1", HTTPSProxy: "y", NoProxy: "z",
	}
	got, err := ParseConfig(want.Frame().Body())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, s := range []string{"", "{}", `{"method":"config"}`, `{"id":1,"method":"config","params":{}}`, `{"method":"x","params":{}}`} {
		if _, err := ParseConfig([]byte(s)); err == nil {
			t.Errorf("%s is a configuration", s)
		}
	}
}

func params(t *testing.T, f proto.Frame) proto.Value {
	t.Helper()
	m, err := proto.ParseMessage(f.Body())
	if err != nil {
		t.Fatal(err)
	}
	return m.Params
}

func TestDecisionsArrive(t *testing.T) {
	want := Decision{
		Target: Target{Protocol: HTTP, Host: "a.example", Port: 65535}, Scope: "domain", Verdict: "ask", Source: "decider",
		Reason: "be\"cause", Method: "GET", Client: "127.0.0.1:1", Override: true,
	}
	if got, err := ParseDecision(params(t, want.Frame(1))); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, spoil := range []func(*Decision){
		func(d *Decision) { d.Protocol = "x" }, func(d *Decision) { d.Scope = "" }, func(d *Decision) { d.Verdict = "no" },
		func(d *Decision) { d.Source = "me" }, func(d *Decision) { d.Host = "" }, func(d *Decision) { d.Reason = string(make([]byte, maxText+1)) },
	} {
		d := want
		spoil(&d)
		if _, err := ParseDecision(params(t, d.Frame(1))); err == nil {
			t.Errorf("%+v is taken", d)
		}
	}
	if got, err := ParseQuestion(params(t, QuestionFrame(7, &want.Target))); err != nil || got != want.Target {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]Answer{
		`{"decision":{"type":"allow"}}`:                    {Verdict: "allow"},
		`{"decision":{"type":"allow","reason":"x"},"x":1}`: {Verdict: "allow"},
		`{"decision":{"type":"deny","reason":"because"}}`:  {Verdict: "deny", Reason: "because"},
		`{"decision":{"type":"ask","reason":"why"}}`:       {Verdict: "ask", Reason: "why"},
		`{"decision":{"type":"deny","reason":""}}`:         {Verdict: "deny", Reason: PolicyDenied},
		`{"decision":{"type":"deny"}}`:                     NoAnswer,
		`{"decision":{"type":"ask"}}`:                      NoAnswer,
		`{"decision":{"type":"perhaps","reason":"x"}}`:     NoAnswer,
		`{"decision":"allow"}`:                             NoAnswer,
		`{"decision":{"type":["allow"]}}`:                  NoAnswer,
		`{}`:                                               NoAnswer, `null`: NoAnswer, `5`: NoAnswer, `[]`: NoAnswer,
	} {
		v, err := proto.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := ParseAnswer(v); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		again, err := proto.Parse(want.AppendJSON(nil))
		if err != nil || ParseAnswer(again) != want {
			t.Errorf("%+v does not arrive: %v", want, err)
		}
	}
	if got := ParseAnswer(proto.Value{}); got != NoAnswer {
		t.Errorf("an error is %+v", got)
	}
}

// What a proxy process sends is not trusted.
func FuzzMessages(f *testing.F) {
	d := Decision{Target: Target{Protocol: HTTP, Host: "a"}, Scope: "domain", Verdict: "deny", Source: "decider"}
	f.Add([]byte(d.Frame(1).Body()))
	f.Add([]byte(QuestionFrame(1, &d.Target).Body()))
	f.Add([]byte((&Config{Bridges: []uint16{1}}).Frame().Body()))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = ParseConfig(text)
		m, err := proto.ParseMessage(text)
		if err != nil {
			return
		}
		_ = ParseAnswer(m.Result)
		if d, err := ParseDecision(m.Params); err == nil {
			again, err := ParseDecision(params(t, d.Frame(1)))
			if err != nil || again.Port != d.Port {
				t.Fatalf("%+v comes back as %+v, %v", d, again, err)
			}
		}
		if target, err := ParseQuestion(m.Params); err == nil && !target.Valid() {
			t.Fatalf("%+v", target)
		}
	})
}
