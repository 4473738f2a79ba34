package agent

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// connectAnywhere says what becomes of connections that know of no proxy.
const connectAnywhere = `
import os, socket
port = int(os.environ["PORT"])
def t(name, f):
    try: print(name, f())
    except OSError as e: print(name, e.strerror)
def talk(host, port, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(20); s.connect((host, port)); s.sendall(b"x")
    return s.recv(9).decode()
def datagram(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20); s.connect((host, port)); s.send(b"x"); return s.recv(9)
t("name", lambda: socket.gethostbyname("x.example").startswith("198.18."))
t("six", lambda: socket.getaddrinfo("x.example", 80, socket.AF_INET6)[0][4][0].startswith("fdc0:de00::"))
t("denied name", lambda: talk("x.example", 80))
t("denied address", lambda: talk("1.2.3.4", 80))
t("denied six", lambda: talk("2606:4700::1", 80, socket.AF_INET6))
t("outer", lambda: talk(os.environ["OUTER"], port))
t("datagram", lambda: datagram("1.2.3.4", 443))
own = socket.create_server(("127.0.0.1", 0))
t("own", lambda: socket.create_connection(own.getsockname()) and "open")
t("nobody", lambda: socket.create_connection(("127.0.0.1", port)))
`

func TestAConnectionThatKnowsOfNoProxy(t *testing.T) {
	testroot.Need(t)
	if !steerable() {
		t.Fatal("this machine cannot do it")
	}
	outer, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outer.Close() }()
	go func() {
		for {
			conn, err := outer.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_, _ = conn.Write([]byte("outer"))
			_ = conn.Close()
		}
	}()
	at := ownAddress(t)
	env := `,"OUTER":"` + at + `","PORT":"` + portOf(outer) + `"`
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	reset := "Connection reset by peer\n"
	want := "name True\nsix True\ndenied name " + reset + "denied address " + reset + "denied six " + reset +
		"outer outer\ndatagram Connection refused\nown open\nnobody Connection refused\nexit 0"
	for i, profile := range []string{readOnly, noProfile, readOnly + enforced} {
		h := ready(t, s, proto.Hello{})
		out, decisions := h.confined(connectAnywhere, env, profile+proxyMember(`,"transparentTcp":true,"domains":{"`+at+`":"allow"}`, ""))
		if out != want {
			t.Errorf("%d: %s", i, out)
		}
		got := strings.Join(decisions, "\n")
		for _, host := range []string{"x.example", "1.2.3.4", "2606:4700::1", at} {
			if strings.Count(got, fmt.Sprintf(`"protocol":"socks5_tcp","host":%q`, host)) != 1 {
				t.Errorf("%d: of %s: %s", i, host, got)
			}
		}
		if len(decisions) != 4 {
			t.Errorf("%d: %s", i, got)
		}
		count.wait(t, int32(i+1))
	}
}

// ownAddress is one of this machine's, beside the loopback's.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr().String()
		}
	}
	t.Fatal("this machine has no address")
	return ""
}
