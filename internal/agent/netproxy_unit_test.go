package agent

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

func TestNetworksThatAreRefused(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	sandbox := `,"sandbox":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled"}`
	bad := "-32602 invalid network proxy config: "
	proxy := func(change string) string { // of the required members, from/to
		from, to, _ := strings.Cut(change, "=>")
		return `,"networkProxy":{"proxy":{` + strings.Replace(baseProxy, from, to, 1) + `}}`
	}
	for _, c := range []struct{ more, want string }{
		{`,"networkProxy":5`, "-32602 invalid type: number, expected struct RemoteNetworkProxyLaunchConfig"},
		{`,"networkProxy":{}`, "-32602 missing field `proxy`"},
		{`,"networkProxy":{"proxy":null}`, "-32602 invalid type: null, expected struct RemoteNetworkProxyConfig"},
		{proxy(`"enabled":true,=>`), "-32602 missing field `enabled`"},
		{proxy(`"enableSocks5":true,=>`), "-32602 missing field `enableSocks5`"},
		{proxy(`"enableSocks5Udp":false,=>`), "-32602 missing field `enableSocks5Udp`"},
		{proxy(`"allowUpstreamProxy":false,=>`), "-32602 missing field `allowUpstreamProxy`"},
		{proxy(`"dangerouslyAllowAllUnixSockets":false,=>`), "-32602 missing field `dangerouslyAllowAllUnixSockets`"},
		{proxy(`"mode":"full",=>`), "-32602 missing field `mode`"},
		{proxy(`"allowLocalBinding":false=>"x":1`), "-32602 missing field `allowLocalBinding`"},
		{proxy(`"mode":"full"=>"mode":"x"`), "-32602 unknown variant `x`, expected `limited` or `full`"},
		{proxyMember(`,"domains":{"x":"y"}`, ""), "-32602 unknown variant `y`, expected one of `none`, `allow`, `deny`"},
		{proxyMember(`,"domains":5`, ""), "-32602 invalid type: number, expected a map"},
		{proxyMember(`,"unixSockets":{"/x":"none"}`, ""), "-32602 unknown variant `none`, expected `allow` or `deny`"},
		{proxyMember(`,"credentialProviders":null`, ""), "-32602 invalid type: null, expected a map"},
		{proxyMember(`,"credentialProviders":{"x":1}`, ""), "-32602 invalid type: number, expected struct CredentialProviderConfig"},
		{proxyMember("", `,"auditMetadata":null`), "-32602 invalid type: null, expected struct NetworkProxyAuditMetadata"},
		{proxyMember("", `,"auditMetadata":{"model":5}`), "-32602 invalid type: number, expected a string"},
		{proxyMember("", `,"executionId":5`), "-32602 invalid type: number, expected a string"},
		{proxyMember("", `,"policyDecisionTimeoutMs":-1`), "-32602 invalid number"},
		{`,"managedNetwork":{"loopbackPorts":[65536]}`, "-32602 invalid number"},
		{`,"managedNetwork":{"loopbackPorts":["x"]}`, `-32602 invalid type: string "x", expected u16`},
		{`,"managedNetwork":{"loopbackPorts":null}`, "-32602 invalid type: null, expected a sequence"},
		{`,"managedNetwork":{"allowUnixSockets":[5]}`, "-32602 invalid type: number, expected a string"},
		{`,"enforceManagedNetwork":null`, "-32602 invalid type: null, expected a boolean"},

		{`,"managedNetwork":{"transparentTcp":true}` + proxyMember("", `,"policyDecisionTimeoutMs":0`), "-32602 transparent TCP requires an executor-local managed proxy"},
		{proxyMember(`,"transparentTcp":true`, `,"policyDecisionTimeoutMs":0`), "-32602 network policy decision callback timeout must be nonzero"},
		{proxyMember(`,"transparentTcp":true`, ""), "-32602 transparent TCP requires a managed Linux sandbox"},
		{strings.Replace(proxyMember(`,"transparentTcp":true`, ""), `"enableSocks5":true`, `"enableSocks5":false`, 1) + sandbox, bad + "transparent_tcp requires an enabled managed SOCKS5 proxy"},
		{proxy(`"enabled":true=>"domains":{"*":"deny"},"enabled":false`), bad + "executor-local network proxy launch requires an enabled proxy"},
		{proxyMember(`,"domains":{"*":"deny"}`, ""), bad + "invalid value for network.denied_domains: * (allowed exact hosts or scoped wildcards like *.example.com or **.example.com)"},
		{proxyMember(`,"unixSockets":{"/a":"allow","b":"allow","c":"deny"}`, ""), bad + `invalid network.allow_unix_sockets[1]: expected a NUL-free absolute path for Linux, got "b"`},
		{proxyMember(`,"credentialProviders":{"x":{"a":1}}`, ""), "-32602 unknown field `a`, expected one of `env`, `patterns`, `url_prefixes`, `url_prefix_from_env`, `auth`, `header`, `prefix`"},
		{proxyMember(`,"credentialProviders":{"x":{"env":"A"}}`, ""), `-32602 invalid type: string "A", expected a sequence`},
		{proxyMember(`,"credentialProviders":{"x":{"auth":["x"]}}`, ""), "-32602 unknown variant `x`, expected one of `bearer`, `token`, `basic`, `header`"},
		{proxyMember(`,"credentialProviders":{"x":{"header":1}}`, ""), "-32602 invalid type: number, expected a string"},
		{proxyMember(`,"domains":{"`+strings.Repeat("x", maxDomainBytes+1)+`":"allow"}`, ""), bad + "more than 4096 domains, or more than 262144 bytes of them"},
	} {
		if got := h.result("process/start", h.startParams("p", "true", c.more)); got != c.want {
			t.Errorf("%.200s:\n got %s\nwant %s", c.more, got, c.want)
		}
	}
	asking := proxyMember("", `,"policyDecisionTimeoutMs":1`)
	for _, id := range []string{"", strings.Repeat("x", 257)} {
		h.call("process/start", h.startParams(id, "true", asking), "-32602 callback-enabled process ID must be non-empty and at most 256 bytes")
	}
	// Whatever the order of the members, the proxy's are judged before the command.
	h.call("process/start", `{"processId":"p","argv":[],"cwd":"file:///C:/","env":{},"tty":false`+proxy(`"enabled":true=>"enabled":false`)+"}", bad+"executor-local network proxy launch requires an enabled proxy")
	// And all of them after the handshake.
	h = connect(t, h.server, proto.Hello{})
	h.call("process/start", h.startParams("p", "true", proxy(`"enabled":true=>"enabled":false`)), "-32600 client must call initialize before using exec methods")
}

func TestAnnounce(t *testing.T) {
	env := map[string]string{"HTTP_PROXY": "mine", "X": "y"}
	announce(env, 1, 2, false)
	web, socks := "http://127.0.0.1:1", "socks5h://127.0.0.1:2"
	want := map[string]string{"X": "y", "CODEX_NETWORK_PROXY_ACTIVE": "1", "CODEX_NETWORK_ALLOW_LOCAL_BINDING": "0", "NODE_USE_ENV_PROXY": "1", "ELECTRON_GET_USE_PROXY": "true"}
	for name := range strings.FieldsSeq(`HTTP_PROXY HTTPS_PROXY WS_PROXY WSS_PROXY YARN_HTTP_PROXY YARN_HTTPS_PROXY NPM_CONFIG_HTTP_PROXY NPM_CONFIG_HTTPS_PROXY
		NPM_CONFIG_PROXY BUNDLE_HTTP_PROXY BUNDLE_HTTPS_PROXY PIP_PROXY DOCKER_HTTP_PROXY DOCKER_HTTPS_PROXY http_proxy https_proxy ws_proxy wss_proxy
		npm_config_http_proxy npm_config_https_proxy npm_config_proxy`) {
		want[name] = web
	}
	for name := range strings.FieldsSeq("ALL_PROXY FTP_PROXY all_proxy ftp_proxy") {
		want[name] = socks
	}
	for name := range strings.FieldsSeq("NO_PROXY no_proxy NPM_CONFIG_NOPROXY npm_config_noproxy BUNDLE_NO_PROXY") {
		want[name] = ""
	}
	if !maps.Equal(env, want) {
		t.Errorf("got %v", env)
	}
	announce(env, 1, 0, true)
	if env["ALL_PROXY"] != web || env["NO_PROXY"] != localNetworks || env["CODEX_NETWORK_ALLOW_LOCAL_BINDING"] != "1" {
		t.Errorf("without SOCKS, with local addresses: %v", env)
	}
}

func TestBridges(t *testing.T) {
	for _, c := range []struct {
		env     map[string]string
		managed *managedNetwork
		ports   []uint16
		after   map[string]string
		err     error
	}{
		{map[string]string{"HTTP_PROXY": "http://u:p@127.0.0.1:9/a?b", "PIP_PROXY": "localhost:8", "all_proxy": "socks5h://LOCALHOST:9", "HTTPS_PROXY": "http://1.1.1.1:3", "NO_PROXY": "x"}, nil,
			[]uint16{9, 8}, map[string]string{"HTTP_PROXY": "http://u:p@127.0.0.1:1009/a?b", "PIP_PROXY": "127.0.0.1:1008", "all_proxy": "socks5h://127.0.0.1:1009", "HTTPS_PROXY": "http://1.1.1.1:3", "NO_PROXY": "x"}, nil},
		{map[string]string{"HTTP_PROXY": "http://127.0.0.1"}, &managedNetwork{ports: []uint16{80, 7}, allUnix: true}, []uint16{80}, map[string]string{"HTTP_PROXY": "http://127.0.0.1:1080"}, nil},
		{map[string]string{}, nil, nil, nil, errNoProxy},
		{map[string]string{"HTTP_PROXY": "", "FOO_PROXY": "http://127.0.0.1:9", "NO_PROXY": "http://127.0.0.1:9"}, nil, nil, nil, errNoProxy},
		{map[string]string{"HTTP_PROXY": "http://[::1]:9"}, nil, nil, nil, errNotLocal},
		{map[string]string{"HTTP_PROXY": "http://127.0.0.2:9"}, nil, nil, nil, errNotLocal},
		{map[string]string{"HTTP_PROXY": "http://127.0.0.1:9@evil:1"}, nil, nil, nil, errNotLocal},
		{map[string]string{"HTTP_PROXY": "http://127.0.0.1:99999"}, nil, nil, nil, errNotLocal},
		{map[string]string{"HTTP_PROXY": "http://127.0.0.1:9"}, &managedNetwork{ports: []uint16{8}}, nil, nil, errOutside},
	} {
		n := network{enforce: true, managed: c.managed}
		p, err := n.plan(c.env, func(string) string { return "" }, true)
		if !errors.Is(err, c.err) {
			t.Errorf("%v: %v, want %v", c.env, err, c.err)
		}
		if err != nil {
			continue
		}
		s := proxySockets{}
		for _, port := range p.config.Bridges {
			s.ports = append(s.ports, 1000+port)
		}
		p.announce(c.env, &s)
		if !p.isolated || !slices.Equal(p.config.Bridges, c.ports) || !maps.Equal(c.env, c.after) || p.allUnix != (c.managed != nil && c.managed.allUnix) {
			t.Errorf("%+v, %v", p, c.env)
		}
	}
	for _, n := range []network{{enforce: true}, {managed: &managedNetwork{}}} { // outside of a sandbox; not enforced
		if p, err := n.plan(map[string]string{}, nil, !n.enforce); p != nil || err != nil {
			t.Errorf("%+v: %+v %v", n, p, err)
		}
	}
}

func TestAPlansSockets(t *testing.T) {
	n := network{enforce: true, proxy: &proxyParams{asks: true, upstream: true, config: policy.Config{HTTP: true, SOCKS: true, UDP: true}}}
	p, err := n.plan(nil, func(name string) string { return name }, true)
	if err != nil || !p.alone() || p.asks == nil || p.config.HTTPProxy != "HTTP_PROXY" || p.config.HTTPSProxy != "HTTPS_PROXY" || p.config.NoProxy != "NO_PROXY" {
		t.Fatalf("%+v %v", p, err)
	}
	s, err := p.open()
	if err != nil || len(s.files) != 3 || len(s.ports) != 3 {
		t.Fatalf("%+v %v", s, err)
	}
	env := map[string]string{}
	p.announce(env, &s)
	if env["ALL_PROXY"] != fmt.Sprintf("socks5h://127.0.0.1:%d", s.ports[1]) {
		t.Errorf("%v", env)
	}
	for _, port := range s.ports[:2] {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	s.close()
}

// A question that is not answered is denied after the time that the harness was
// given, and 5 s.
func TestAQuestionsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := &conn{out: newOutbox(proto.NewStreamConn(theirs, 1<<20)), gone: make(chan struct{})}
		h := &harness{t: t, conn: proto.NewStreamConn(ours, 1<<20), answers: make(chan string, 9), notes: make(chan string, 9), ended: make(chan struct{})}
		go h.read()
		begun := time.Now()
		p := &proxyParams{timeoutMs: 500}
		target := policy.Target{Protocol: "http", Host: "x.example", Port: 80}
		if a := c.ask("p", &target, p.patience()); a != policy.NoAnswer {
			t.Errorf("got %+v", a)
		}
		if took := time.Since(begun); took != 5500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if got, want := h.answer(), `{"id":1,`+question; got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		if len(c.asked.waiting) > 0 {
			t.Error("the question is still there")
		}
		close(c.gone)
		if a := c.ask("p", &target, (&proxyParams{timeoutMs: 1<<64 - 1}).patience()); a != policy.NoAnswer {
			t.Errorf("got %+v", a)
		}
		c.out.close()
		_ = ours.Close()
	})
}
