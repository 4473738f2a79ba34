package transport

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/coder/websocket"
	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/auth"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// ValidEnvironment says whether a name may be an environment's: 1 to 64 of
// A-Z a-z 0-9 . _ -, beginning with a letter or a digit.
func ValidEnvironment(name string) bool { return environmentName().MatchString(name) }

var environmentName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
})

// endpoint answers HTTP as the reference does: which check comes first, and
// with what words, is part of the protocol.
type endpoint struct {
	ctx   context.Context
	h     Handler
	guard *auth.Guard
	door  *door
	large *semaphore.Weighted // bytes for large messages
}

func (e endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	if _, ok := r.Header["Origin"]; ok { // a browser; no page may reach this
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if r.URL.Path == "/readyz" {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET,HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	}
	environment, known := environmentOf(r.URL.Path)
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if status, text := refusal(r); status != 0 {
		refuse(w, status, text)
		return
	}
	if text := e.guard.Refuse(r.Header["Authorization"]); text != "" {
		refuse(w, http.StatusUnauthorized, text)
		return
	}
	e.upgrade(w, r, environment)
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func environmentOf(path string) (name string, known bool) {
	if path == "/" {
		return "", true
	}
	name, ok := strings.CutPrefix(path, "/environments/")
	return name, ok && ValidEnvironment(name)
}

// refusal says why a request cannot be upgraded; the status is 0 if it can.
func refusal(r *http.Request) (status int, text string) {
	switch h := r.Header; {
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, "Request method must be `GET`"
	case !hasToken(h["Connection"], "upgrade"):
		return http.StatusBadRequest, "Connection header did not include 'upgrade'"
	case !hasToken(h["Upgrade"], "websocket"):
		return http.StatusBadRequest, "`Upgrade` header did not include 'websocket'"
	case h.Get("Sec-Websocket-Version") != "13":
		return http.StatusBadRequest, "`Sec-WebSocket-Version` header did not include '13'"
	case h.Get("Sec-Websocket-Key") == "":
		return http.StatusBadRequest, "`Sec-WebSocket-Key` header missing"
	}
	return 0, ""
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

func (e endpoint) upgrade(w http.ResponseWriter, r *http.Request, environment string) {
	wire, _ := r.Context().Value(wireKey{}).(*wireConn)
	if wire == nil || !e.door.admit(wire) {
		refuse(w, http.StatusServiceUnavailable, "too many connections")
		return
	}
	pongs := wsframe.NewPongs(false, func(frame []byte) error {
		_, err := wire.Write(frame)
		return err
	})
	ws, err := websocket.Accept(metered{w, wire}, r, &websocket.AcceptOptions{
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived:  func(_ context.Context, payload []byte) bool { pongs.Answer(payload); return false },
	})
	if err != nil {
		return // the library has answered
	}
	c := newWSConn(e.ctx, ws, wire, e.large)
	defer c.share.release()
	defer func() { _ = c.Close() }()
	go func() {
		keepalive(c.ctx, wire)
		_ = c.Close() // a ping that cannot be sent is the end too
	}()
	go func() {
		patientWatchdog.watch(c.ctx, wire.info)
		_ = c.Close()
	}()
	e.h(e.ctx, c, environment, proto.WebSocketPeer(r.RemoteAddr))
}
