package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// What becomes of a request, whichever program makes it.
const (
	fetched     = "ok"
	noName      = "no such name"
	refusedAt   = "refused"     // by the connection that cannot be made
	unreachable = "unreachable" // by the kernel, since there is no route
	cut         = "cut"         // once the client has said whom it wants
	forbidden   = "forbidden"   // the same, where it can be told
)

// words are what programs say in each case.
var words = []struct {
	says *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`\b403\b`), forbidden},
	{regexp.MustCompile(`(?m)^ok|not valid: is this a git repository`), fetched},
	{regexp.MustCompile(`could not resolve|no address associated|name or service not known|failure in name resolution|enotfound|eai_again`), noName},
	{regexp.MustCompile(`unreachable|enetunreach`), unreachable},
	{regexp.MustCompile(`refused|couldn't connect`), refusedAt},
	{regexp.MustCompile(`reset|unexpected eof|ssl_error_syscall|eof occurred|closed|hang up|empty reply`), cut},
}

func wordFor(output string) string {
	for _, w := range words {
		if w.says.MatchString(strings.ToLower(output)) {
			return w.is
		}
	}
	return output
}

// browsers are programs that fetch a URL. The last one does by sockets alone what the
// others do with libraries.
var browsers = []struct{ name, script string }{
	{"curl", `curl -gsSf -m 30 -o /tmp/out "$1" && echo ok`},
	{"python", `python3 -c 'import sys, urllib.request
try: urllib.request.urlopen(sys.argv[1], timeout=30).read(); print("ok")
except Exception as e: print(e)' "$1"`},
	{"node", `node -e 'fetch(process.argv[1]).then(r => console.log(r.ok ? "ok" : r.status), e => console.log(e.cause.code, e.cause))' "$1"`},
	{"git", `git ls-remote "$1/x.git"`},
	{"raw", `test -z "$3" || /workspace/probe name "$3" 8.8.8.8:53 >/tmp/out; /workspace/probe "$2" "$4" "${3:--}"`},
}

// enforce puts a policy in the place of the one of the environment "default".
func (r *root) enforce(p rules.Policy) {
	r.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(r.t.TempDir(), "policy.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.policy(0, "set", "--from", file, "--close")
}

// fetch has a program fetch a URL and compares what it says with what was to come,
// and with what came to the servers.
func fetch(t *testing.T, h *harness, n *testnet.Internet, seen *testnet.Capture, name, script string, try try) {
	u, err := url.Parse(try.url)
	if err != nil {
		t.Fatal(err)
	}
	want := try.want
	if name == "raw" && try.raw != "" {
		want = try.raw
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := u.Hostname()
	address, isName := served[host]
	if !isName {
		address, host = host, ""
	}
	to := netip.MustParseAddrPort(net.JoinHostPort(address, port))
	how := map[string]string{"http": "http", "https": "tls"}[u.Scheme]

	seen.Forget()
	before, asked := len(n.Web.Requests()), n.DNS.Count(u.Hostname())
	out := h.sh(fmt.Sprintf("exec 2>&1\n%sset -- '%s' %s '%s' '%s'\n%s", trust(n), try.url, how, host, to, script))
	got := wordFor(out)
	if want == unreachable && got == refusedAt && (name == "curl" || name == "git") {
		got = unreachable // curl has one sentence for both
	}
	if got != want {
		t.Errorf("%s, want %s: %s", got, want, out)
	}
	if came := len(n.Web.Requests()) - before; (came > 0) != (want == fetched) {
		t.Errorf("%d requests came to the servers", came)
	}
	if want == noName || want == refusedAt || want == unreachable {
		for _, p := range seen.To(to.Addr()) {
			if p.SYN || p.Protocol != "tcp" { // the others end a connection that was allowed before
				t.Errorf("there left %v", p)
			}
		}
	}
	if want == noName && n.DNS.Count(u.Hostname()) > asked && host != "lan.example" {
		t.Errorf("the name was looked up outside")
	}
}
