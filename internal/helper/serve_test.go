package helper

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

const patience = 30 * time.Second

// agent is the other end of a helper's socket.
type agent struct {
	t    *testing.T
	pipe net.Conn
	conn *proto.StreamConn
	done chan error
}

func start(t *testing.T, handle func(*Call)) *agent {
	t.Helper()
	ours, theirs := net.Pipe()
	a := &agent{t, ours, proto.NewStreamConn(ours, proto.MaxAnswer), make(chan error, 1)}
	go func() { a.done <- serve(theirs, handle) }()
	t.Cleanup(func() { _ = ours.Close() })
	return a
}

func (a *agent) send(text string) {
	a.t.Helper()
	if err := a.conn.WriteFrames(proto.FrameOf([]byte(text))); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) read() string {
	a.t.Helper()
	_ = a.pipe.SetReadDeadline(time.Now().Add(patience))
	f, err := a.conn.ReadFrame()
	if err != nil {
		a.t.Fatal(err)
	}
	return string(f.Body())
}

func request(id int, url string, stream bool) string {
	return fmt.Sprintf(`{"id":%d,"method":"http/request","params":{"method":"GET","url":%q,"headers":[],"bodyBase64":"","follow":true,"requestId":"r","streamResponse":%v}}`, id, url, stream)
}

func TestServeEndsWithItsSocket(t *testing.T) {
	a := start(t, HTTP())
	_ = a.pipe.Close()
	if err := <-a.done; err != nil {
		t.Error(err)
	}
	for _, text := range []string{"x", `{"method":"initialized"}`, `{"id":1,"result":{}}`} {
		a := start(t, HTTP())
		a.send(text)
		if err := <-a.done; err == nil {
			t.Errorf("%s: it goes on", text)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	size := 0
	o := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 1<<20)
		for sent := 0; sent < size; sent += len(piece) {
			_, _ = w.Write(piece[:min(len(piece), size-sent)])
		}
	}))
	t.Cleanup(o.Close)
	a := start(t, HTTP())
	size = MaxBody
	a.send(request(1, o.URL, false))
	if got := a.read(); !strings.HasPrefix(got, `{"id":1,"result":{"status":200,`) || len(got) < MaxBody/3*4 {
		t.Errorf("%.100s", got)
	}
	size = MaxBody + 1
	a.send(request(2, o.URL, false))
	if got, want := a.read(), fmt.Sprintf(`{"error":{"code":-32603,"message":"failed to read http/request response body: it has more than %d bytes"},"id":2}`, MaxBody); got != want {
		t.Errorf("%.200s", got)
	}
	size = 5 << 20
	a.send(request(3, o.URL, true))
	if got := a.read(); !strings.HasPrefix(got, `{"id":3,"result":{"status":200,`) || !strings.HasSuffix(got, `"bodyBase64":""}}`) {
		t.Errorf("%.200s", got)
	}
	total := 0
	for seq := uint64(1); ; seq++ {
		m, err := proto.ParseMessage([]byte(a.read()))
		if err != nil || m.Method != "http/request/bodyDelta" {
			t.Fatalf("%+v, %v", m, err)
		}
		data, err := proto.DecodeBase64(m.Params.Get("deltaBase64").Bytes())
		if n, _ := m.Params.Get("seq").Uint64(); err != nil || n != seq || len(data) > 1<<20 {
			t.Fatalf("piece %d of %d bytes comes when %d is due, %v", n, len(data), seq, err)
		}
		total += len(data)
		if m.Params.Get("done").Kind == proto.True {
			break
		}
	}
	if total != size {
		t.Errorf("%d bytes", total)
	}
}

func TestQuestionsWithBadParams(t *testing.T) {
	for _, handle := range []func(*Call){HTTP(), Config, Discover} {
		a := start(t, handle)
		for _, params := range []string{"{}", "null", "[]", `{"home":5}`} {
			a.send(`{"id":1,"method":"x","params":` + params + `}`)
			if got := a.read(); !strings.HasPrefix(got, `{"error":{"code":-32602,`) {
				t.Errorf("%s: %s", params, got)
			}
		}
	}
}
