package e2e

import (
	"encoding/base64"
	"fmt"
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

// Tools work as they come, with nothing told of a proxy, under a list of the hosts
// that they need; and say what is wrong where a host is not on the list.
func TestToolsUnderAnAllowList(t *testing.T) {
	n, config := newInternet(t)
	registry.Serve(t, n)
	var hosts []string
	for _, of := range registry.Hosts {
		hosts = append(hosts, of...)
	}
	slices.Sort(hosts)
	r := toolsRoot(t, config, fmt.Sprintf("mode = \"rules\"\n[[profile.default.network.rule]]\nallow = [\"%s\", %q]\n", strings.Join(hosts, `", "`), goHost))
	serveTools(t, n)
	n.DNS.Set("elsewhere.example", 0, registry.Address.String())
	h := r.serveIn(n).connect("/", "")

	const apt = "apt-get -o Acquire::Retries=0 -o Dir::Etc::sourcelist=/workspace/sources.list -o Dir::Etc::sourceparts=- "
	const npm = "node ../npm/package/bin/npm-cli.js --no-audit --no-fund --cache=/workspace/npm-cache "
	for _, tt := range []struct{ name, allowed, denied, says string }{
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			environment := trust(n) + "export HOME=/workspace GOPATH=/workspace/gopath GOSUMDB=off CARGO_UNSTABLE_SPARSE_REGISTRY=true RUSTC_BOOTSTRAP=1\ncd /workspace\n"
			expect(t, "what is allowed", h.sh("exec 2>&1\n"+environment+tt.allowed), registry.Greeting)
			expect(t, "what is denied", h.sh("exec 2>&1\n"+environment+tt.denied), tt.says)
		})
	}
	if n.DNS.Count("elsewhere.example") > 0 {
		t.Error("a name that is not allowed was looked up")
	}
}
