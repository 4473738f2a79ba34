package broker

import (
	"fmt"
	"io"
	"net/http"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// refuse answers a request in place of the host. The text has no secret.
func refuse(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "exec-server: "+text+"\n")
}

// deny tells that the policy is why.
func deny(w http.ResponseWriter, host string, port uint16, d rules.Decision) {
	why := "no rule allows it"
	switch d.Reason {
	case rules.ByMode:
	case rules.ByRule:
		why = fmt.Sprintf("rule %d denies it", d.Rule+1) // as everywhere, the first is 1
	default:
		why = string(d.Reason)
	}
	if host == "" {
		host = "a request without a host"
	} else {
		host = joinHostPort(host, port)
	}
	refuse(w, http.StatusForbidden, fmt.Sprintf("the network policy of this sandbox does not allow %s (%s)", host, why))
}
