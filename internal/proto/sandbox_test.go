package proto

import (
	"reflect"
	"testing"
)

func TestSandboxProfiles(t *testing.T) {
	wrap := func(profile string) string {
		return `{"sandbox":{"permissions":` + profile + `,"windowsSandboxLevel":"disabled"}}`
	}
	open, files, network := Sandbox{Network: true}, Sandbox{Network: true, Restricted: true}, Sandbox{}
	for _, test := range []struct {
		params string
		want   *Sandbox
		bad    bool
	}{
		{`{}`, nil, false},
		{`{"sandbox":null}`, nil, false},
		{wrap(`{"type":"disabled"}`), &open, false},
		{wrap(`{"type":"external","network":"enabled"}`), &open, false},
		{wrap(`{"type":"external","network":"restricted"}`), &network, false},
		{wrap(`{"type":"managed","network":"enabled","file_system":{"type":"unrestricted"}}`), &open, false},
		{wrap(`{"type":"managed","network":"enabled","file_system":{"type":"restricted","entries":[]}}`), &files, false},
		{`{"sandbox":{}}`, nil, true},
		{`{"sandbox":1}`, nil, true},
		{`{"sandbox":[]}`, nil, true},
		{wrap(`null`), nil, true},
		{wrap(`{"type":"other"}`), nil, true},
		{wrap(`{"type":"external"}`), nil, true},
		{wrap(`{"type":"managed","network":"enabled"}`), nil, true},
		{wrap(`{"type":"managed","network":"enabled","file_system":{"type":"x"}}`), nil, true},
		{`{"sandbox":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"x"}}`, nil, true},
	} {
		p := ParamsOf(parse(t, test.params), "Test")
		got := p.SandboxParam()
		switch {
		case (p.Err() != nil) != test.bad:
			t.Errorf("%s: error %v", test.params, p.Err())
		case test.bad:
		case (got == nil) != (test.want == nil) || got != nil && !reflect.DeepEqual(*got, *test.want):
			t.Errorf("%s: got %+v, want %+v", test.params, got, test.want)
		}
	}
}
