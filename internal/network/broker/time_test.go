package broker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// piped serves a connection, with a host that answers over pipes, in the present
// bubble. It returns the client's side.
func piped(t *testing.T, host func(*http.Request, net.Conn)) net.Conn {
	client, server := net.Pipe()
	go Serve(t.Context(), server, Options{
		To:    netip.MustParseAddrPort("127.0.0.1:80"),
		Check: func(string, uint16, rules.Protocol) rules.Decision { return rules.Decision{Verdict: rules.Allow} },
		Dial: func(context.Context, string, uint16) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				if r, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
					host(r, theirs)
				}
			}()
			return ours, nil
		},
	})
	return client
}

func TestSlowHeads(t *testing.T) {
	for _, text := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: a.test\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			c := piped(t, func(*http.Request, net.Conn) { t.Error("it has arrived") })
			_, _ = io.WriteString(c, text)
			begin := time.Now()
			_, err := io.Copy(io.Discard, c)
			if took := time.Since(begin); took != headTime || err != nil {
				t.Errorf("%q: the end came after %v, %v", text, took, err)
			}
		})
	}
}

// TestStreamsMayTakeTheirTime has hours between the parts, before the answer, and a
// client that lets its connection wait.
func TestStreamsMayTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, func(r *http.Request, c net.Conn) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(5 * time.Hour)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
			for _, s := range "abc" {
				time.Sleep(5 * time.Hour)
				_, _ = fmt.Fprintf(c, "%c", s)
			}
		})
		go func() {
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\n")
			time.Sleep(5 * time.Hour)
			_, _ = io.WriteString(c, "x")
			time.Sleep(5 * time.Hour)
			_, _ = io.WriteString(c, "y")
		}()
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != "abc" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		begin := time.Now()
		if _, err := r.ReadByte(); err != io.EOF || time.Since(begin) != idleTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
