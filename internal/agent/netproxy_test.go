package agent

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

const baseProxy = `"enabled":true,"enableSocks5":true,"enableSocks5Udp":false,"allowUpstreamProxy":false,"dangerouslyAllowAllUnixSockets":false,"mode":"full","allowLocalBinding":false`

func proxyMember(proxy, launch string) string {
	return `,"networkProxy":{"proxy":{` + baseProxy + proxy + `}` + launch + `}`
}

// proxied starts a command with a proxy, which runs until the gate opens, and
// returns the proxy's address.
func (h *harness) proxied(id string, g gate, proxy, launch string) (address string) {
	h.t.Helper()
	h.start(id, `echo "$HTTP_PROXY"; : <`+string(g), proxyMember(proxy, launch))
	m, err := proto.ParseMessage([]byte(h.note()))
	if err != nil || m.Method != "process/output" {
		h.t.Fatalf("%v %v", m, err)
	}
	line, _ := proto.DecodeBase64(m.Params.Get("chunk").Bytes())
	address, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "http://127.0.0.1:")
	if !ok {
		h.t.Fatalf("HTTP_PROXY is %q", line)
	}
	return "127.0.0.1:" + address
}

// request sends a request for a host to a proxy; the answer comes later.
func (h *harness) request(proxy, host string) net.Conn {
	h.t.Helper()
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host, host)
	return conn
}

var changing = regexp.MustCompile(`"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"|"client":"127\.0\.0\.1:\d+"`)

// decision is the next notification, which has to be one, without what changes.
func (h *harness) decision() string {
	h.t.Helper()
	text := h.note()
	if n := len(changing.FindAllString(text, -1)); n != 2 {
		h.t.Errorf("%s has %d of timestamp and client", text, n)
	}
	return changing.ReplaceAllString(text, "_")
}

func wantDecision(id, verdict, source, reason, host string) string {
	return `{"method":"network/policyDecision","params":{"processId":"` + id + `",_,"scope":"domain","decision":"` + verdict + `","source":"` + source +
		`","reason":"` + reason + `","protocol":"http","host":"` + host + `","port":80,"method":"GET",_,"policyOverride":false}}`
}

func TestACommandsProxy(t *testing.T) {
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	h := ready(t, s, proto.Hello{})
	g := newGate(t)
	at := h.proxied("p", g, `,"domains":{"no.example":"deny"}`, "")
	conn := h.request(at, "x.example")
	if got, want := h.decision(), wantDecision("p", "deny", "baseline_policy", "not_allowed", "x.example"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if text, _ := io.ReadAll(conn); !strings.HasPrefix(string(text), "HTTP/1.1 403 ") {
		t.Errorf("got %s", text)
	}
	h.request(at, "no.example")
	if got, want := h.decision(), wantDecision("p", "deny", "baseline_policy", "denied", "no.example"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	g.open(t)
	h.untilClosed("p")
	count.wait(t, 1)
	if conn, err := net.Dial("tcp", at); err == nil {
		_ = conn.Close()
		t.Error("the proxy outlives its command")
	}
}

// wait waits until as many proxies as were begun have ended.
func (p *proxies) wait(t *testing.T, begun int32) {
	t.Helper()
	for end := time.Now().Add(patience); p.begun.Load() != begun || p.ended.Load() != begun; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d begun, %d ended, want %d", p.begun.Load(), p.ended.Load(), begun)
		}
	}
}

func TestAProxyEndsWithItsCommand(t *testing.T) {
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	h := ready(t, s, proto.Hello{})
	h.proxied("killed", newGate(t), "", "")
	h.call("process/terminate", `{"processId":"killed"}`, `ok {"running":true}`)
	count.wait(t, 1)
	h.call("process/start", strings.Replace(h.startParams("p", "true", proxyMember("", "")), `"sh"`, `"/nowhere"`, 1),
		"-32603 No such file or directory (os error 2) [spawnNotFound]")
	count.wait(t, 2)
	h.untilClosed("killed")
	h.proxied("left", newGate(t), "", "")
	h.call("process/start", h.startParams("left", "true", proxyMember("", "")), "-32600 process left already exists")
	s.Close() // ends the session
	count.wait(t, 3)
	s.startProxy = func([]int) (proxyLink, error) { return nil, fmt.Errorf("no helper") }
	h = ready(t, s, proto.Hello{})
	h.call("process/start", h.startParams("p", "true", proxyMember("", "")), "-32603 network proxy: no helper [spawnFailed]")
	h.start("p", "true", "") // the id is free
}

const question = `"method":"network/policyRequest","params":{"processId":"p","request":{"protocol":"http","host":"x.example","port":80}}}`

func TestQuestionsToTheHarness(t *testing.T) {
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	for i, c := range []struct{ answer, verdict, source, reason string }{
		{`"result":{"decision":{"type":"deny","reason":"because"}}`, "deny", "decider", "because"},
		{`"result":{"decision":{"type":"ask","reason":"why"}}`, "ask", "decider", "why"},
		{`"error":{"code":1,"message":"no"}`, "deny", "decider", "not_allowed"},
		{`"result":{}`, "deny", "decider", "not_allowed"},
		{`"result":{"decision":{"type":"allow"}}`, "deny", "baseline_policy", "not_allowed_local"}, // it is unknown
	} {
		for _, n := range []int{1, 8} {
			h := ready(t, s, proto.Hello{Concurrency: n})
			at := h.proxied("p", newGate(t), "", `,"policyDecisionTimeoutMs":60000`)
			for id := 1; id < 3; id++ {
				h.request(at, "x.example")
				if got, want := h.answer(), fmt.Sprintf(`{"id":%d,`, id)+question; got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
				h.send(`{"id":%d,%s}`, id, c.answer)
				if got, want := h.decision(), wantDecision("p", c.verdict, c.source, c.reason, "x.example"); got != want {
					t.Errorf("%d: \n got %s\nwant %s", i, got, want)
				}
				h.send(`{"id":%d,%s}`, id, c.answer) // again: it says nothing
			}
			h.alive()
			h.send(`{"id":3,%s}`, c.answer) // was never asked
			h.gone()
		}
	}
}

func TestAnswersToNothingEndTheConnection(t *testing.T) {
	s := newServer(t, Options{})
	for _, text := range []string{`{"id":1,"result":{}}`, `{"id":0,"result":{}}`, `{"id":"1","result":{}}`, `{"id":-1,"error":{"code":1,"message":""}}`} {
		h := ready(t, s, proto.Hello{})
		h.send("%s", text)
		h.gone()
	}
}

// In serial mode an answer waits its turn.
func TestAnAnswerWaitsBehindARequest(t *testing.T) {
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	h := ready(t, s, proto.Hello{})
	at := h.proxied("p", newGate(t), "", `,"policyDecisionTimeoutMs":60000`)
	holds["answer"] = make(chan struct{})
	h.send(`{"id":7,"method":"test/hold","params":{"on":"answer"}}`)
	h.request(at, "x.example")
	h.answer() // the question
	h.send(`{"id":1,"result":{"decision":{"type":"deny","reason":"late"}}}`)
	select {
	case text := <-h.notes:
		t.Errorf("got %s", text)
	case <-time.After(50 * time.Millisecond):
	}
	close(holds["answer"])
	if got, want := h.decision(), wantDecision("p", "deny", "decider", "late", "x.example"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestADetachedSessionIsNotAsked(t *testing.T) {
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	h := ready(t, s, proto.Hello{})
	at := h.proxied("p", newGate(t), "", `,"policyDecisionTimeoutMs":60000`)
	asked := h.request(at, "x.example")
	h.answer() // the question, which nobody answers
	h.leave()
	later := h.request(at, "x.example")
	for _, conn := range []net.Conn{asked, later} {
		if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), `"reason":"not_allowed","decision":"deny","source":"decider"`) {
			t.Errorf("got %s, %v", text, err)
		}
	}
	again := connect(t, s, proto.Hello{})
	again.initialize(h.id)
	again.request(at, "x.example")
	if got, want := again.answer(), `{"id":1,`+question; got != want {
		t.Errorf("after the resume\n got %s\nwant %s", got, want)
	}
}
