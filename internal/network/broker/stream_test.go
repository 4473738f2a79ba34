package broker

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// both runs a test over plain HTTP and over TLS, to a.test.
func both(t *testing.T, h http.HandlerFunc, f func(t *testing.T, w *world, c *http.Client, url string)) {
	t.Run("http", func(t *testing.T) {
		w := start(t, h)
		f(t, w, w.client(nil), "http://a.test/")
	})
	t.Run("h2", func(t *testing.T) {
		w, config := overTLS(t, h, "a.test")
		f(t, w, w.client(config), "https://a.test/")
	})
	t.Run("http/1.1 in TLS", func(t *testing.T) {
		w, config := overTLS(t, h, "a.test")
		config.NextProtos = []string{"http/1.1"}
		f(t, w, w.client(config), "https://a.test/")
	})
}

// TestTrap104EventsArriveAtOnce has a host that waits until its last event was read.
func TestTrap104EventsArriveAtOnce(t *testing.T) {
	read := make(chan struct{})
	both(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for n := range 5 {
			<-read
			_, _ = fmt.Fprintf(w, "data: %d\n\n", n)
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, w *world, c *http.Client, url string) {
		res, err := c.Do(request(t, "GET", url, "")) // returns with the head
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		r := bufio.NewReader(res.Body)
		for n := range 5 {
			read <- struct{}{}
			line, err := r.ReadString('\n')
			if _, e := r.Discard(1); err != nil || e != nil || line != fmt.Sprintf("data: %d\n", n) {
				t.Fatalf("%q, %v, %v", line, err, e)
			}
		}
	})
}

// TestBothWaysAtATime has a host that answers each line of a body before the next.
func TestBothWaysAtATime(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_ = http.NewResponseController(w).Flush()
		for s := bufio.NewScanner(r.Body); s.Scan(); {
			_, _ = fmt.Fprintf(w, "%s!\n", s.Text())
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, w *world, c *http.Client, url string) {
		body, in := io.Pipe()
		defer in.Close()
		q := request(t, "POST", url, "")
		q.Body, q.ContentLength, q.GetBody = body, -1, nil
		res, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		r := bufio.NewReader(res.Body)
		for _, word := range []string{"a", "b", "c"} {
			_, _ = fmt.Fprintln(in, word)
			if line, err := r.ReadString('\n'); line != word+"!\n" {
				t.Fatalf("%q, %v", line, err)
			}
		}
	})
}

func TestLargeBodies(t *testing.T) {
	const size = 4 << 20
	both(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}, func(t *testing.T, w *world, c *http.Client, url string) {
		sent, got := sha256.New(), sha256.New()
		q := request(t, "PUT", url, "")
		q.Body, q.ContentLength, q.GetBody = io.NopCloser(io.TeeReader(io.LimitReader(rand.New(rand.NewSource(1)), size), sent)), size, nil
		res, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		n, err := io.Copy(got, res.Body)
		if err != nil || n != size || string(sent.Sum(nil)) != string(got.Sum(nil)) {
			t.Errorf("%d bytes came back, %v", n, err)
		}
	})
}

func TestTrailers(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Announced", r.Trailer.Get("X-Sum")+"1")
		w.Header().Set(http.TrailerPrefix+"X-Other", "2")
	}, func(t *testing.T, w *world, c *http.Client, url string) {
		q := request(t, "POST", url, "")
		q.Body, q.ContentLength, q.Trailer = io.NopCloser(strings.NewReader("x")), -1, http.Header{"X-Sum": {"sum"}}
		a := w.get(c, q)
		if a.body != "body" || a.Trailer.Get("X-Announced") != "sum1" || a.Trailer.Get("X-Other") != "2" {
			t.Errorf("%q %v", a.body, a.Trailer)
		}
	})
}

// TestExpectContinue has a host that wants a body, and one that does not.
func TestExpectContinue(t *testing.T) {
	w := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI == "/no" {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	for path, want := range map[string]int{"/yes": 100, "/no": 413} {
		c := w.connect()
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != want {
			t.Fatalf("%s: %v, %v", path, res, err)
		}
		if want != 100 {
			continue
		}
		_, _ = io.WriteString(c, "body")
		res, err = http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "body" {
			t.Errorf("%q, %v", body, err)
		}
	}
}

// TestWebSocket has one beside other requests; the host's TLS would rather have HTTP/2.
func TestWebSocket(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		kind, b, err := c.Read(r.Context())
		if err == nil {
			err = c.Write(r.Context(), kind, append(b, '!'))
		}
		if err != nil {
			t.Error(err)
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	}, func(t *testing.T, w *world, c *http.Client, url string) {
		w.get(c, request(t, "GET", url, ""))
		if tr := c.Transport.(*http.Transport); tr.TLSClientConfig != nil {
			tr.CloseIdleConnections()
			tr = tr.Clone()
			tr.TLSClientConfig.NextProtos, tr.ForceAttemptHTTP2 = []string{"http/1.1"}, false
			tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
			defer tr.CloseIdleConnections()
			c = &http.Client{Transport: tr}
		}
		ws, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: c})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		if err := ws.Write(t.Context(), websocket.MessageText, []byte("hi")); err != nil {
			t.Fatal(err)
		}
		if _, b, err := ws.Read(t.Context()); err != nil || string(b) != "hi!" {
			t.Errorf("%q, %v", b, err)
		}
		if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Error(err)
		}
	})
}

// TestClientsThatLeave end what they have begun at the host.
func TestClientsThatLeave(t *testing.T) {
	gone := make(chan struct{})
	both(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	}, func(t *testing.T, w *world, c *http.Client, url string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res, err := c.Do(request(t, "GET", url, "").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		cancel()
		<-gone
		if got := w.seen(&w.failed); len(got) > 0 {
			t.Errorf("told of %q", got)
		}
	})
}

// TestTheEnd is that of the daemon, with an answer half-way and a web socket open.
func TestTheEnd(t *testing.T) {
	w := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		if c, _, err := rc.Hijack(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	})
	for _, more := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		client, server := net.Pipe()
		over := make(chan struct{})
		go func() {
			defer close(over)
			Serve(ctx, server, w.o)
		}()
		_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a.test\r\n"+more+"\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-over
		if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is there after its end")
		}
	}
}
