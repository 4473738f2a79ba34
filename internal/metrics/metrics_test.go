package metrics

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/rules"
)

func get(t *testing.T, url string, header http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestCountersAreServed(t *testing.T) {
	s, err := Listen("http://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Listen(strings.TrimSuffix(s.URL(), "/metrics")); err == nil {
		t.Error("one address is taken twice")
	}
	s.Serve(func() map[string]network.Stats {
		return map[string]network.Stats{
			"a": {
				Total: network.Count{Allowed: 1, Denied: 5, In: 3, Out: 4}, Open: 2, Lookups: 7, FailedLookups: 9,
				Denied: map[rules.Reason]uint64{rules.ByMode: 2, rules.Metadata: 3},
				Names:  map[string]network.Count{"secret.example": {Allowed: 1}},
			},
			"b": {},
		}
	})
	status, text := get(t, s.URL(), nil)
	for _, want := range []string{
		`exec_server_network_allowed_total{environment="a"} 1`, `exec_server_network_allowed_total{environment="b"} 0`,
		`exec_server_network_denied_total{environment="a",reason="metadata"} 3`, `exec_server_network_denied_total{environment="a",reason="mode"} 2`,
		`exec_server_network_connections{environment="a"} 2`, `exec_server_network_lookups_total{environment="a"} 7`,
		`exec_server_network_failed_lookups_total{environment="a"} 9`,
		`exec_server_network_received_bytes_total{environment="a"} 3`, `exec_server_network_sent_bytes_total{environment="a"} 4`,
	} {
		if !strings.Contains("\n"+text, "\n"+want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if status != http.StatusOK || strings.Contains(text, "secret.example") {
		t.Errorf("it is %d:\n%s", status, text)
	}
	if status, text := get(t, s.URL(), http.Header{"Origin": {"http://evil.example"}}); status != http.StatusForbidden || strings.Contains(text, "exec_server") {
		t.Errorf("a web page gets %d: %s", status, text)
	}
	if status, _ := get(t, strings.TrimSuffix(s.URL(), "metrics"), nil); status != http.StatusNotFound {
		t.Errorf("other paths give %d", status)
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for _, url := range []string{"", "none", "http://", "http://localhost:1", "http://127.0.0.1", "https://127.0.0.1:1", "http://127.0.0.1:1/", "ws://127.0.0.1:1"} {
		if s, err := Listen(url); err == nil {
			t.Errorf("%q is one", url)
			s.Close()
		}
	}
}
