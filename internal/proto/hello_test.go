package proto

import "testing"

func TestHelloComesAsItWent(t *testing.T) {
	for _, want := range []Hello{
		{Peer: StdioPeer, Concurrency: 1},
		{Peer: "exec-server websocket 127.0.0.1:5", SessionID: NewSessionID(), Concurrency: 64, Extensions: true},
		{Peer: "exec-server noise relay", Concurrency: 1, Relayed: true},
		{Concurrency: 1, Count: true},
		{Concurrency: 1, Farewell: true},
		{Peer: "a\"\n\x00é", Concurrency: 2},
	} {
		got, err := ParseHello(want.Frame().Body())
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if h, err := ParseHello(Hello{}.Frame().Body()); err != nil || h.Concurrency != 1 {
		t.Errorf("no concurrency arrives as %d, %v", h.Concurrency, err)
	}
}

func TestHelloOfAnotherKindIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[]`, `null`,
		`{"version":2,"peer":"","sessionId":"","concurrency":1,"extensions":false}`,
		`{"version":1,"peer":"","sessionId":"","concurrency":0,"extensions":false}`,
		`{"version":1,"peer":"","sessionId":"","concurrency":18446744073709551615,"extensions":false}`,
		`{"version":1,"sessionId":"","concurrency":1,"extensions":false}`,
		`{"version":1,"peer":"","sessionId":null,"concurrency":1,"extensions":false}`,
		`{"version":1,"peer":"","sessionId":"","concurrency":1,"extensions":1}`,
		`{"id":1,"method":"initialize","params":{"clientName":"x"}}`,
	} {
		if h, err := ParseHello([]byte(text)); err == nil {
			t.Errorf("%s is taken for %+v", text, h)
		}
	}
}
