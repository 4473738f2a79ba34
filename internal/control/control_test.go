package control

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
)

func TestAThrowawayEnvironment(t *testing.T) {
	b := newBackend()
	_, path := serveOn(t, b)
	want := Throwaway{Profile: "p", Image: "i", User: "u:g", Cwd: "/c", Env: []string{"A=1", "B=x y=é"}, Network: "rules"}
	conn, err := DialThrowaway(path, want)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-b.asked; !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
	closed := make(chan struct{})
	var out strings.Builder
	c := client.New(conn, func(method string, params proto.Value) {
		switch method {
		case "process/output":
			data, err := proto.DecodeBase64(params.Get("chunk").Bytes())
			if err != nil {
				t.Error(err)
			}
			out.Write(data)
		case "process/closed":
			close(closed)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := c.Initialize(ctx, "test", ""); err != nil {
		t.Fatal(err)
	}
	_, err = c.Call(ctx, "process/start", map[string]any{
		"processId": "p", "argv": []string{"/bin/cat"}, "cwd": "file:///", "env": map[string]string{}, "tty": false, "pipeStdin": true,
	})
	if err == nil {
		_, err = c.Call(ctx, "process/write", map[string]any{"processId": "p", "writeId": "1", "chunk": []byte("over and back")})
	}
	if err == nil {
		_, err = c.Call(ctx, "process/closeStdin", map[string]any{"processId": "p"})
	}
	if err != nil {
		t.Fatal(err)
	}
	<-closed
	if out.String() != "over and back" {
		t.Errorf("got %q", out.String())
	}
	_ = c.Close()
	<-b.ended // the environment ends with the connection
}

func TestARefusalReachesWhoAsks(t *testing.T) {
	b := newBackend()
	b.refusal = errors.New("no profile \"x\"; there are: default")
	_, path := serveOn(t, b)
	if _, err := DialThrowaway(path, Throwaway{Profile: "x"}); err == nil || err.Error() != b.refusal.Error() {
		t.Errorf("got %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	dir := t.TempDir()
	if _, err := DialThrowaway(filepath.Join(dir, "none"), Throwaway{}); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("without a socket: %v", err)
	}
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if _, err := DialThrowaway(stale, Throwaway{}); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("with the socket of a daemon that was killed: %v", err)
	}
	s, err := Listen(stale) // which the next daemon replaces
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Lstat(stale); !os.IsNotExist(err) {
		t.Errorf("the socket is there still: %v", err)
	}
}

func TestTheSocketIsItsUsersAlone(t *testing.T) {
	_, path := serveOn(t, newBackend())
	st, err := os.Stat(path)
	if err != nil || st.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the mode is %v, %v", st.Mode(), err)
	}
}

func TestOtherRequests(t *testing.T) {
	b := newBackend()
	_, path := serveOn(t, b)
	const full = `"profile":"","image":"","user":"","cwd":""`
	for request, want := range map[string]string{
		`{"id":"a","method":"stop"}`:                                                 `{"error":{"code":-32601,"message":"unknown control request \"stop\""},"id":"a"}`,
		`{"id":1,"method":"run"}`:                                                    `{"error":{"code":-32603,"message":"invalid type: null, expected struct Throwaway"},"id":1}`,
		`{"id":1,"method":"run","params":{}}`:                                        "{\"error\":{\"code\":-32603,\"message\":\"missing field `profile`\"},\"id\":1}",
		`{"id":1,"method":"run","params":{` + full + `,"env":[1]}}`:                  `{"error":{"code":-32603,"message":"invalid type: number, expected a string"},"id":1}`,
		`{"id":1,"method":"run","params":{` + full + `}}`:                            `{"id":1,"result":{}}`,
		`{"id":1,"method":"env.add","params":{"name":"a","settings":{"token":"x"}}}`: `{"error":{"code":-32603,"message":"json: unknown field \"token\""},"id":1}`,
		`{"id":1,"method":"env.rm","params":[]}`:                                     `{"error":{"code":-32603,"message":"json: cannot unmarshal array into Go value of type control.nameParams"},"id":1}`,
		`{"id":1,"method":"env.rm"}`:                                                 `{"error":{"code":-32603,"message":"EOF"},"id":1}`,
		`{"id":1,"method":"env.ls","params":{}}`:                                     `{"id":1,"result":null}`,
		`{"id":1,"method":"env.policy.get","params":{"name":"a"}}`:                   `{"id":1,"result":{"name":"a","profile":"","running":true,"known":false,"policy":{"mode":"none","connections":0}}}`,
		`{"id":1,"method":"env.policy.set","params":{"name":"a","no_tls":true}}`:     `{"error":{"code":-32603,"message":"json: unknown field \"no_tls\""},"id":1}`,
		`{"method":"run"}`:                                                           "",
		`{}`:                                                                         "",
		`nonsense`:                                                                   "",
	} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		conn := proto.NewStreamConn(c, proto.MaxAnswer)
		if err := conn.WriteFrames(proto.FrameOf([]byte(request))); err != nil {
			t.Fatal(err)
		}
		f, err := conn.ReadFrame()
		if want == "" && err != io.EOF || want != "" && (err != nil || string(f.Body()) != want) {
			t.Errorf("%s: %s, %v; want %s", request, f, err, want)
		}
		_ = conn.Close()
	}
}

func TestCloseEndsEnvironments(t *testing.T) {
	b := newBackend()
	s, path := serveOn(t, b)
	conn, err := DialThrowaway(path, Throwaway{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	select {
	case <-b.ended: // Close has waited for it
	default:
		t.Error("the environment goes on")
	}
	if _, err := conn.ReadFrame(); err == nil {
		t.Error("the connection goes on")
	}
	s.Close()
}
