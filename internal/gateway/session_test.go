package gateway

import (
	"strings"
	"testing"
	"testing/synctest"
)

const (
	newSession = `{"id":1,"method":"initialize","params":{"clientName":"x"}}`
	ended      = `{"method":"nonsense"}`
)

func resume(id string) string {
	return `{"id":1,"method":"initialize","params":{"clientName":"x","resumeSessionId":"` + id + `"}}`
}

func TestEachSessionGetsAnEnvironment(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		a, b := connect(t, g, "").initialize(""), connect(t, g, "").initialize("")
		m.logged(t, "+"+a+"+"+b+" -") // the names are the sessions'
		connect(t, g, "named").initialize("")
		m.logged(t, "+"+a+"+"+b+"+named -")
	})
}

func TestAResumeFindsItsEnvironment(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "")
		id := h.initialize("")
		connect(t, g, "").expect(resume(id), `{"error":{"code":-32010,"message":"session `+id+` is already attached to another connection"},"id":1}`)
		_ = h.c.Close()
		synctest.Wait()
		again := connect(t, g, "")
		if got := again.initialize(id); got != id {
			t.Errorf("the session is %s, not %s", got, id)
		}
		m.logged(t, "+"+id+" -")
	})
}

func TestAnEnvironmentEndsWithItsSession(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "")
		id := h.initialize("")
		_ = h.c.Close()
		expire()
		m.logged(t, "+"+id+" -"+id)
		connect(t, g, "").expect(resume(id), `{"error":{"code":-32600,"message":"unknown session id `+id+`"},"id":1}`)
		m.logged(t, "+"+id+" -"+id)
	})
}

// A resume that comes while the environment is being removed comes too late. It
// must not make a new one of that name, which nobody would ever remove.
func TestAResumeDuringTheRemovalIsTooLate(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "")
		id := h.initialize("")
		_ = h.c.Close()
		synctest.Wait()
		m.set(func() { m.remove = make(chan struct{}) })
		expire()
		late := connect(t, g, "")
		late.send(resume(id))
		synctest.Wait()
		close(m.remove)
		if got, want := late.answer(), `{"error":{"code":-32600,"message":"unknown session id `+id+`"},"id":1}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		m.logged(t, "+"+id+" -"+id)
		if other := late.initialize(""); other == id {
			t.Error("the id is used again")
		}
	})
}

// Until there is a session there is no environment either.
func TestTheLobbyNeedsNoEnvironment(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "")
		const prefix = `{"error":{"code":-32600,"message":"failed to parse websocket JSON-RPC message from exec-server websocket 127.0.0.1:5: `
		for message, want := range map[string]string{
			`x`:                                      prefix + `expected value at line 1 column 1"},"id":-1}`,
			`{"id":1}`:                               prefix + `expected a JSON-RPC object"},"id":-1}`,
			resume("none"):                           `{"error":{"code":-32600,"message":"unknown session id none"},"id":1}`,
			resume(""):                               `{"error":{"code":-32600,"message":"unknown session id "},"id":1}`,
			`{"id":2,"method":"unknown"}`:            "{\"error\":{\"code\":-32601,\"message\":\"exec-server stub does not implement `unknown` yet\"},\"id\":2}",
			`{"id":3,"method":"environment/status"}`: `{"error":{"code":-32600,"message":"client must call initialize before using environment status methods"},"id":3}`,
			`{"id":4,"method":"fs/readFile","params":{}}`:                                                "{\"error\":{\"code\":-32602,\"message\":\"missing field `path`\"},\"id\":4}",
			`{"id":5,"method":"initialize","params":{}}`:                                                 "{\"error\":{\"code\":-32602,\"message\":\"missing field `clientName`\"},\"id\":5}",
			`{"id":6,"method":"initialize","params":{"clientName":5}}`:                                   `{"error":{"code":-32602,"message":"invalid type: number, expected a string"},"id":6}`,
			`{"id":7,"method":"initialize","params":{"clientName":"x","resumeSessionId":1}}`:             `{"error":{"code":-32602,"message":"invalid type: number, expected a string"},"id":7}`,
			`{"id":8,"method":"initialize"}`:                                                             `{"error":{"code":-32602,"message":"invalid type: null, expected struct InitializeParams"},"id":8}`,
			`{"id":9,"method":"initialize","params":{"clientName":"x","resumeSessionId":"a","more":[]}}`: `{"error":{"code":-32600,"message":"unknown session id a"},"id":9}`,
		} {
			h.expect(message, want)
		}
		m.logged(t, "+ -")
		id := h.initialize("") // and after all that one is made
		m.logged(t, "+"+id+" -")
	})
}

func TestTheLobbyEndsConnections(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		for _, message := range []string{ended, `{"method":"initialized"}`, `{"id":1,"result":{}}`, `{"method":"initialize","params":{"clientName":"x"}}`} {
			h := connect(t, g, "")
			h.send(message)
			h.gone()
		}
		_ = connect(t, g, "").c.Close()
		m.logged(t, "+ -")
	})
}

func TestAFailureForASessionNamesIt(t *testing.T) {
	inBubble(t, Options{PerSession: true, MaxEnvironments: 1}, func(t *testing.T, m *memory, g *Gateway) {
		connect(t, g, "").initialize("")
		h := connect(t, g, "")
		h.send(newSession)
		if got := h.answer(); !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, "1 environments live") {
			t.Error(got)
		}
	})
}

// A harness that goes away before its environment is there leaves none behind.
func TestAnEnvironmentThatNobodyWaitsForEnds(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		m.set(func() { m.create = make(chan struct{}) })
		h := connect(t, g, "")
		h.send(newSession)
		synctest.Wait()
		_ = h.c.Close()
		close(m.create)
		expire()
		if len(g.Names()) != 0 {
			t.Errorf("left is %v", g.Names())
		}
	})
}

func TestAnAttachedSessionLetsNobodyElseIntoItsEnvironment(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "")
		id := h.initialize("")
		other := connect(t, g, "")
		other.expect(resume(id), `{"error":{"code":-32010,"message":"session `+id+` is already attached to another connection"},"id":1}`)
		other.expect(newSession, `{"error":{"code":-32600,"message":"session id `+id+` is taken"},"id":1}`)
		_ = other.c.Close()
		synctest.Wait()
		m.logged(t, "+"+id+" -") // and it has not ended with the other
	})
}
