package image

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// registry is a read-only registry of one image, "thing:1", on the loopback
// address.
type registry struct {
	image    testImage
	password string      // wanted of the user "me", if not ""
	stall    atomic.Bool // layers stop in the middle
	basic    bool        // Basic authentication rather than a token
	host     string
}

func (r *registry) start(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	if ip, _, _ := net.SplitHostPort(r.host); !net.ParseIP(ip).IsLoopback() {
		t.Fatal(r.host)
	}
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	user, password, _ := q.BasicAuth()
	known := user == "me" && password == r.password
	switch {
	case q.URL.Path == "/token" && known:
		fmt.Fprintf(w, `{"token":"t-%s"}`, r.password)
		return
	case q.URL.Path == "/token":
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.basic && !known:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	case !r.basic && r.password != "" && q.Header.Get("Authorization") != "Bearer t-"+r.password:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, r.host))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for path, blob := range map[string][]byte{
		"manifests/1": r.image.manifest,
		"manifests/sha256:" + sum(r.image.manifest): r.image.manifest,
		"blobs/sha256:" + sum(r.image.config):       r.image.config,
		"blobs/sha256:" + sum(r.image.layer):        r.image.layer,
	} {
		if q.URL.Path != "/v2/thing/"+path {
			continue
		}
		if strings.HasPrefix(path, "manifests") {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", "sha256:"+sum(blob))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
		if q.Method == http.MethodHead {
			return
		}
		if r.stall.Load() && sum(blob) == sum(r.image.layer) {
			w.Write(blob[:len(blob)/2])
			w.(http.Flusher).Flush()
			select {
			case <-q.Context().Done():
			case <-time.After(time.Minute):
			}
			return
		}
		w.Write(blob)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}
