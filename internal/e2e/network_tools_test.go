package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
	"github.com/exec-server/exec-server/internal/network/testnet/registry"
)

// trust has the programs of a shell trust the world's CA, and nothing else.
func trust(n *testnet.Internet) string {
	script := "echo " + base64.StdEncoding.EncodeToString(n.CA.PEM()) + " | base64 -d > /workspace/ca.pem\n"
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO"} {
		script += "export " + name + "=/workspace/ca.pem\n"
	}
	return script
}

// How apt and npm are called.
const (
	apt = "apt-get -o Acquire::Retries=0 -o Dir::Etc::sourcelist=/workspace/sources.list -o Dir::Etc::sourceparts=- "
	npm = "node ../npm/package/bin/npm-cli.js --no-audit --no-fund --cache=/workspace/npm-cache "
	// What tools write is kept in the workspace, and what is no concern of theirs is off.
	quiet = "exec 2>&1; export HOME=/workspace GOPATH=/workspace/gopath GOSUMDB=off CARGO_UNSTABLE_SPARSE_REGISTRY=true RUSTC_BOOTSTRAP=1\ncd /workspace\n"
)

// tools fetch a package, and use it. The other script is about a host that is not
// allowed, and says so.
var tools = []struct{ name, allowed, denied, says string }{
	{"git", "git clone -q " + registry.Repository + " && cat hello-exec/README",
		"git clone https://elsewhere.example/x.git", "Could not resolve host: elsewhere.example"},
	{"curl", "mkdir npm && curl -sSf " + npmURL + " | tar xz -C npm && test -f npm/package/bin/npm-cli.js && echo " + registry.Greeting,
		"curl -sSf https://elsewhere.example/", "Could not resolve host: elsewhere.example"},
	{"pip", "pip install --no-cache-dir --target py hello-exec && PYTHONPATH=py python3 -m hello_exec",
		"pip install --target other --retries 1 --index-url https://elsewhere.example/simple hello-exec", "Name or service not known"},
	{"npm", "mkdir n && cd n && " + npm + "install hello-exec && node node_modules/.bin/hello-exec",
		"cd n && " + npm + "--fetch-retries=0 --registry=https://elsewhere.example install other", "ENOTFOUND"},
	{"apt", "echo 'deb [trusted=yes] http://deb.debian.org/debian test main' > sources.list; " + apt + "update && " + apt + "install -y hello-exec && hello-exec",
		"echo 'deb [trusted=yes] http://elsewhere.example/debian test main' > sources.list; " + apt + "update", "Could not resolve 'elsewhere.example'"},
	{"go", "curl -sSf " + goURL + " | tar x && mkdir g && cd g && ../go/bin/go mod init x && ../go/bin/go get example.com/hello && " +
		`printf 'package x\nimport "example.com/hello"\nconst Greeting = hello.Greeting\n' > x.go && ../go/bin/go build . && cat ../gopath/pkg/mod/example.com/hello*/hello.go`,
		"cd g && GOPROXY=https://elsewhere.example ../go/bin/go get example.com/other", "no such host"},
	{"cargo", `mkdir -p c/src && cd c && printf '[package]\nname="c"\nversion="0.1.0"\nedition="2021"\n[dependencies]\nhello-exec="1"\n' > Cargo.toml && ` +
		`printf 'fn main() { println!("{}", hello_exec::GREETING) }' > src/main.rs && cargo fetch && cargo run -q`,
		`cd c && printf '[source.crates-io]\nreplace-with = "x"\n[source.x]\nregistry = "sparse+https://elsewhere.example/"\n' > config.toml && rm Cargo.lock && cargo --config config.toml --config net.retry=0 fetch`,
		"Could not resolve host: elsewhere.example"},
}

// packageHosts are the hosts that the tools need.
func packageHosts() []string {
	hosts := []string{goHost}
	for _, of := range registry.Hosts {
		hosts = append(hosts, of...)
	}
	slices.Sort(hosts)
	return hosts
}

// Tools work as they come, with nothing told of a proxy, under a list of the hosts
// that they need; and say what is wrong where a host is not on the list.
func TestToolsUnderAnAllowList(t *testing.T) {
	n, config := newInternet(t)
	registry.Serve(t, n)
	r := toolsRoot(t, config, fmt.Sprintf("mode = \"rules\"\n[[profile.default.network.rule]]\nallow = [\"%s\"]\n", strings.Join(packageHosts(), `", "`)))
	serveTools(t, n)
	n.DNS.Set("elsewhere.example", 0, registry.Address.String())
	h := r.serveIn(n).connect("/", "")

	for _, tt := range tools {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, "what is allowed", h.sh(quiet+trust(n)+tt.allowed), registry.Greeting)
			expect(t, "what is denied", h.sh(quiet+trust(n)+tt.denied), tt.says)
		})
	}
	if n.DNS.Count("elsewhere.example") > 0 {
		t.Error("a name that is not allowed was looked up")
	}
}

// The tools have neither a credential nor a certificate to name: the daemon adds the one,
// and the environment is made so that they find the other.
func TestToolsWithCredentialsThatTheyDoNotHave(t *testing.T) {
	n, config := newInternet(t)
	registry.Serve(t, n)
	serveTools(t, n)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("5e5a6e-is-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := "mode = \"rules\"\nintercept = true\n"
	for _, host := range packageHosts() {
		how, is := "", "Bearer 5e5a6e-is-secret"
		switch host {
		case "github.com":
			how, is = ", basic_user = \"x\"", "Basic "+base64.StdEncoding.EncodeToString([]byte("x:5e5a6e-is-secret"))
		case "deb.debian.org":
			policy += "[[profile.default.network.rule]]\nallow = [\"deb.debian.org\"]\nprotocols = [\"http\"]\n"
		}
		if host != "deb.debian.org" {
			policy += fmt.Sprintf("[[profile.default.network.rule]]\nallow = [%q]\n", host)
		}
		policy += fmt.Sprintf("credential = { secret_file = %q%s }\n", secret, how)
		next := n.Web.Handler(host)
		n.Web.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != is {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		}))
	}
	r := toolsRoot(t, config, policy)
	world := filepath.Join(t.TempDir(), "world.pem")
	if err := os.WriteFile(world, n.CA.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", world)
	h := r.serveIn(n).connect("/", "")
	for _, tt := range tools {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, tt.name, h.sh(quiet+tt.allowed), registry.Greeting)
		})
	}
	if got := h.sh("grep -rl 5e5a6e-is-secret /workspace /etc /run /tmp 2>/dev/null; env | grep 5e5a6e-is-secret"); got != "" {
		t.Errorf("in the sandbox is %s", got)
	}
}
