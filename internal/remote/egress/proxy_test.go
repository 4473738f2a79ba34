package egress

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/remote/socket"
	"github.com/exec-server/exec-server/internal/wsframe"
)

func TestProxyChoice(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		env  []string
		url  string
		want string
	}{
		{name: "nothing", url: "https://a.test"},
		{name: "https", env: []string{"HTTPS_PROXY", "http://p:1", "HTTP_PROXY", "http://q:2"}, url: "https://a.test", want: "http://p:1"},
		{name: "http", env: []string{"HTTPS_PROXY", "http://p:1", "HTTP_PROXY", "http://q:2"}, url: "http://a.test", want: "http://q:2"},
		{name: "lower case", env: []string{"https_proxy", "p:1"}, url: "https://a.test", want: "http://p:1"},
		{name: "upper case first", env: []string{"https_proxy", "p:1", "HTTPS_PROXY", "q:1"}, url: "https://a.test", want: "http://q:1"},
		{name: "all", env: []string{"all_proxy", "socks5://p:1"}, url: "http://a.test", want: "socks5://p:1"},
		{name: "all is last", env: []string{"ALL_PROXY", "socks5://p:1", "https_proxy", "q"}, url: "https://a.test", want: "http://q"},
		{name: "https only", env: []string{"HTTPS_PROXY", "http://p:1"}, url: "http://a.test"},
		{name: "option first", o: Options{ProxyURL: "https://o:3"}, env: []string{"HTTPS_PROXY", "http://p:1"}, url: "https://a.test", want: "https://o:3"},
		{name: "option for both", o: Options{ProxyURL: "https://o:3"}, url: "http://a.test", want: "https://o:3"},
		{name: "none", o: Options{ProxyURL: "none"}, env: []string{"HTTPS_PROXY", "http://p:1"}, url: "https://a.test"},
		{name: "except domain", env: []string{"ALL_PROXY", "p", "NO_PROXY", "b.test, .c.test"}, url: "https://x.b.test"},
		{name: "not other domain", env: []string{"ALL_PROXY", "p", "NO_PROXY", "b.test"}, url: "https://xb.test", want: "http://p"},
		{name: "except network", env: []string{"ALL_PROXY", "p", "no_proxy", "10.0.0.0/8"}, url: "https://10.2.3.4:99"},
		{name: "except port", env: []string{"ALL_PROXY", "p", "no_proxy", "b.test:99"}, url: "https://b.test", want: "http://p"},
		{name: "except all", env: []string{"ALL_PROXY", "p", "no_proxy", "*"}, url: "https://b.test"},
		{name: "option's exceptions", o: Options{NoProxy: "z.test"}, env: []string{"ALL_PROXY", "p", "no_proxy", "*"}, url: "https://b.test", want: "http://p"},
		{name: "loopback", env: []string{"ALL_PROXY", "p"}, url: "http://127.0.0.1:5"},
		{name: "localhost", env: []string{"ALL_PROXY", "p"}, url: "http://localhost:5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			choose, err := proxies(tt.o, env(tt.env...))
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			got, err := choose(u)
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (tt.want == "") || got != nil && got.String() != tt.want {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

func TestProxyThatIsNone(t *testing.T) {
	for _, bad := range []string{"http://u:hunter2@h:port", "ftp://u:hunter2@h", "http://", "://hunter2", "http://u:hunter2@"} {
		_, err := newClient(Options{ProxyURL: bad}, env())
		if err == nil {
			t.Errorf("%q: no error", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is told: %v", err)
		}
		if _, err := newClient(Options{}, env("https_proxy", bad)); err == nil || !strings.Contains(err.Error(), "https_proxy") {
			t.Errorf("%q in the environment: %v", bad, err)
		}
	}
}

// basic is user:pass word, as the URL u:pass%20word@ has it.
const basic = "Basic dTpwYXNzIHdvcmQ="

func TestThroughProxy(t *testing.T) {
	ca := newAuthority(t)
	for _, tt := range []struct {
		name               string
		secure, proxyOnTLS bool
	}{{"ws", false, false}, {"wss", true, false}, {"ws over an https proxy", false, true}, {"wss over an https proxy", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			scheme, proxyScheme := "ws", "http"
			server, proxyServer := ca.server, ca.server
			if tt.secure {
				scheme = "wss"
			} else {
				server = nil
			}
			if tt.proxyOnTLS {
				proxyScheme = "https"
			} else {
				proxyServer = nil
			}
			p := newProxy(t, proxyServer, basic, origin(t, server, nil))
			c, err := newClient(Options{ProxyURL: proxyScheme + "://u:pass%20word@" + p.addr, CAFile: ca.file}, env())
			if err != nil {
				t.Fatal(err)
			}
			conn, err := c.Connect(t.Context(), scheme+"://registry.test/x", nil, limit)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			echo(t, conn)
			resp, err := c.HTTP().Get(strings.Replace(scheme, "ws", "http", 1) + "://registry.test/y")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			want := "forwarded" // plain requests are the proxy's to make
			if tt.secure {
				want = "here"
			}
			if text, err := io.ReadAll(resp.Body); err != nil || string(text) != want {
				t.Errorf("got %q, %v, want %q", text, err, want)
			}
			asked := p.requests()
			port := map[bool]string{false: ":80", true: ":443"}[tt.secure]
			if len(asked) != 2 || asked[0].Method != "CONNECT" || asked[0].Host != "registry.test"+port {
				t.Fatalf("the proxy was asked for %v", asked)
			}
			if _, ok := asked[0].Header["User-Agent"]; ok {
				t.Error("the tunnel has a user agent")
			}
		})
	}
}

func TestProxyRefuses(t *testing.T) {
	ca := newAuthority(t)
	p := newProxy(t, nil, basic, "")
	c, err := newClient(Options{ProxyURL: "http://u:hunter2@" + p.addr, CAFile: ca.file}, env())
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"ws://registry.test/?sig=hunter3", "wss://registry.test/?sig=hunter3"} {
		_, err := c.Connect(t.Context(), to, nil, limit)
		if err == nil || !plain(err) || !strings.Contains(err.Error(), "407 Proxy Authentication Required") {
			t.Errorf("%s: %v", to, err)
		}
	}
	_, err = c.HTTP().Get("https://registry.test/")
	if err == nil || !plain(err) || !strings.Contains(err.Error(), "407 Proxy Authentication Required") {
		t.Errorf("https: %v", err)
	}
	gone, err := newClient(Options{ProxyURL: "http://u:hunter2@127.0.0.1:1"}, env())
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"ws://registry.test/?sig=hunter3", "wss://registry.test/?sig=hunter3"} {
		if _, err := gone.Connect(t.Context(), to, nil, limit); err == nil || strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "proxy") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// plain tells whether an error has neither the proxy's password nor its words.
func plain(err error) bool {
	text := err.Error()
	return !strings.Contains(text, "hunter") && !strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("u:hunter2"))) && !strings.Contains(text, "not with")
}

func TestLoopbackGoesPastTheProxy(t *testing.T) {
	p := newProxy(t, nil, "", "")
	c, err := newClient(Options{}, env("ALL_PROXY", p.addr))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.Connect(t.Context(), "ws://"+origin(t, nil, nil), nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echo(t, conn)
	if n := len(p.requests()); n != 0 {
		t.Errorf("the proxy saw %d requests", n)
	}
}

// limit is for messages that are short.
const limit = 1 << 10

func echo(t *testing.T, s *socket.Socket) {
	t.Helper()
	if err := s.Write(wsframe.AppendMasked(nil, wsframe.Binary, []byte("hello"))); err != nil {
		t.Fatal(err)
	}
	if text, binary, err := s.Read(); err != nil || !binary || string(text) != "hello" {
		t.Fatalf("got %q, %v", text, err)
	}
}

func TestHeadersOfUpgrade(t *testing.T) {
	var saw http.Header
	var uri string
	addr := origin(t, nil, func(r *http.Request) { saw, uri = r.Header, r.RequestURI })
	c, err := newClient(Options{}, env())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.Connect(t.Context(), "ws://"+addr+"/a%20b//c?x=1&a=b%2Fc", http.Header{"X-Request-Id": {"req_1"}}, limit)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	var names []string
	for name := range saw {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "Connection Sec-Websocket-Key Sec-Websocket-Version Upgrade X-Request-Id" {
		t.Errorf("headers: %s", got)
	}
	if uri != "/a%20b//c?x=1&a=b%2Fc" {
		t.Errorf("asked for %s", uri)
	}
}
