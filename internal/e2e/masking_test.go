package e2e

import (
	"maps"
	"testing"
)

const maskedSecret = "abc01234567890123456789"

// useMasked sends a request with what a command has for its credential to an
// origin that it is meant for, by way of the command's proxy. The pattern that is
// looked for does not match itself.
const useMasked = `
secret='abc012[3]4567890123456789'
case "$A" in abc????????????????????) echo a placeholder;; esac
grep -lE "$secret" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /run/exec-server/*.pem 2>/dev/null
grep -c 'BEGIN CERT' "$SSL_CERT_FILE"
(echo x >>"$SSL_CERT_FILE") 2>/dev/null || echo read-only
until wget -q -O /dev/null --header "Authorization: Bearer $A" "$ORIGIN" 2>/dev/null; do :; done
`

// oneOrigin is an origin on the container's own loopback, for one request. It prints
// the credential, and answers when it has all of the head.
const oneOrigin = `
rm -f /tmp/answer; mkfifo /tmp/answer
nc -l -p 8000 </tmp/answer | {
	exec 3>/tmp/answer
	while read -r line; do
		line=$(echo "$line" | tr -d '\r')
		case "$line" in Authorization:*) echo "$line";; "") break;; esac
	done
	printf 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' >&3
}`

// A credential of the environment of a command is nowhere in the container where a
// command could see it; what the command sends to the credential's host has it.
func TestCredentialsAreMaskedInAContainer(t *testing.T) {
	for _, user := range []string{"0", "1234:1234"} {
		r := newRoot(t, "[profile.default]\nimage = \"test/busybox:1\"\nuser = \""+user+"\"\n")
		h := r.serve().connect("/", "")
		info := h.must("environment/info", nil).Get("capabilities")
		for _, flag := range []string{"credentialMasking", "credentialMaskingCustomProviders"} {
			if string(info.Get(flag).AppendJSON(nil)) != "true" {
				t.Errorf("%s is not true", flag)
			}
		}
		for name, more := range map[string]map[string]any{
			"free":     {},
			"confined": {"sandbox": sandboxOf("minimal=read", "slash_tmp=write"), "enforceManagedNetwork": true},
		} {
			// An origin on the container's own loopback, for one request.
			_, origin := h.script(nil, oneOrigin)
			params := map[string]any{
				"env": map[string]string{"PATH": "/bin:/usr/bin", "A": maskedSecret, "ORIGIN": "http://127.0.0.1:8000/v1/x"},
				"networkProxy": map[string]any{"proxy": map[string]any{
					"enabled": true, "enableSocks5": true, "enableSocks5Udp": false, "allowUpstreamProxy": false, "dangerouslyAllowAllUnixSockets": false,
					"mode": "full", "allowLocalBinding": false, "domains": map[string]string{"127.0.0.1": "allow"}, "credentialMasking": true,
					"credentialProviders": map[string]any{"my": map[string]any{
						"env": []string{"A"}, "patterns": []string{"abc[0-9]{20}"}, "url_prefixes": []string{"http://127.0.0.1:8000/v1"}, "auth": []string{"bearer"},
					}},
				}},
			}
			maps.Copy(params, more)
			want := "a placeholder\n1\nread-only\n"
			if user == "0" && name == "free" {
				want = "a placeholder\n1\n" // root writes what it wants
			}
			if out, code := h.finish(params, useMasked); out != want || code != 0 {
				t.Errorf("user %s, %s: %s, exit code %d", user, name, out, code)
			}
			wait(t, origin.closed, "the origin")
			if got := origin.out.String(); got != "Authorization: Bearer "+maskedSecret+"\n" {
				t.Errorf("user %s, %s: the origin got %s", user, name, got)
			}
		}
		if left := h.sh("ls /run/exec-server | grep pem || true"); left != "" {
			t.Errorf("certificates are left: %s", left)
		}
	}
}
