package egress

import (
	"io"
	"net"
	"testing"
)

// socksProxy speaks SOCKS 5 with user and password, once, and connects to one
// address. It sends what it was asked for.
func socksProxy(t *testing.T, to string) (addr string, asked <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ch := make(chan string, 1)
	go func() {
		defer close(ch)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		read := func(n int) []byte {
			b := make([]byte, n)
			_, _ = io.ReadFull(c, b)
			return b
		}
		text := func() string { return string(read(int(read(1)[0]))) }
		read(int(read(2)[1])) // the methods
		_, _ = c.Write([]byte{5, 2})
		read(1)
		user, password := text(), text()
		_, _ = c.Write([]byte{1, 0})
		read(4) // connect to a name
		host := text()
		read(2)
		out, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer out.Close()
		_, _ = c.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 1})
		ch <- user + ":" + password + "@" + host
		go func() { _, _ = io.Copy(out, c); out.Close() }()
		_, _ = io.Copy(c, out)
	}()
	return l.Addr().String(), ch
}

func TestThroughSocks(t *testing.T) {
	ca := newAuthority(t)
	for scheme, addr := range map[string]string{"ws": origin(t, nil, nil), "wss": origin(t, ca.server, nil)} {
		proxy, asked := socksProxy(t, addr)
		c, err := newClient(Options{CAFile: ca.file}, env("ALL_PROXY", "socks5h://u:word@"+proxy))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := c.Connect(t.Context(), scheme+"://registry.test/", nil, limit)
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		echo(t, conn)
		conn.Close()
		if got := <-asked; got != "u:word@registry.test" {
			t.Errorf("%s: asked for %s", scheme, got)
		}
	}
}
