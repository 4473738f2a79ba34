package netproxy

import (
	"io"
	"net/http"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// message is what a blocked client reads about a reason, and header the value of
// x-proxy-error.
func explain(reason string) (message, header string) {
	switch reason {
	case policy.NotAllowed:
		return "Domain not in allowlist.", "blocked-by-allowlist"
	case policy.NotAllowedLocal:
		return "Sandbox policy blocks local/private network addresses.", "blocked-by-allowlist"
	case policy.Denied:
		return "Domain denied by the sandbox policy.", "blocked-by-denylist"
	case policy.MethodNotAllowed:
		return "Method not allowed in limited mode.", "blocked-by-method-policy"
	case policy.MITMRequired:
		return "MITM required for limited HTTPS.", "blocked-by-mitm-required"
	}
	return "Request blocked by network policy.", "blocked-by-policy"
}

// blocked answers a request that was not let through: one for CONNECT in plain
// text, others in JSON.
func blocked(w http.ResponseWriter, d *policy.Decision) {
	message, header := explain(d.Reason)
	w.Header()["x-proxy-error"] = []string{header} // as the reference writes it
	if d.Protocol == policy.Connect {
		text(w, http.StatusForbidden, message)
		return
	}
	body := append([]byte(nil), `{"status":"blocked"`...)
	for _, m := range [][2]string{
		{"host", d.Host}, {"reason", d.Reason}, {"decision", d.Verdict}, {"source", d.Source}, {"protocol", d.Protocol},
	} {
		body = proto.AppendString(append(append(append(body, `,"`...), m[0]...), `":`...), m[1])
	}
	body = proto.AppendUint(append(body, `,"port":`...), uint64(d.Port))
	body = append(proto.AppendString(append(body, `,"message":`...), message), '}')
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(body)
}

// text answers in plain text.
func text(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, message)
}
