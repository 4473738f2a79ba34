package registry

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/exec-server/exec-server/internal/remote/noise"
)

const registered = `{"environment_id":"env-1","url":"ws://somewhere.test/?sig=x","security_profile":"noise_hybrid_ik_v1","executor_registration_id":"","more":[1]}`

// headersOf has the names of the headers of a call, without those of HTTP/1 itself.
func headersOf(c call) string {
	var names []string
	for name, values := range c.Header {
		names = append(names, strings.ToLower(name)+"="+strings.Join(values, "|"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestRegisterNoise(t *testing.T) {
	c, calls := fake(t, bearer(t), answer(201, registered))
	key := publicKey(t)
	r, err := c.RegisterNoise(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if r != (Registration{"", "ws://somewhere.test/?sig=x"}) {
		t.Errorf("got %+v", r)
	}
	got := (*calls)[0]
	if got.Method != "POST" || got.RequestURI != "/base/cloud/environment/env-1/register" {
		t.Errorf("%s %s", got.Method, got.RequestURI)
	}
	length := got.Header.Get("Content-Length")
	if h := headersOf(got); h != "accept-encoding=zstd,gzip accept=*/* authorization=Bearer "+token+" content-length="+length+" content-type=application/json" {
		t.Errorf("headers: %s", h)
	}
	var j struct {
		Profile string          `json:"security_profile"`
		Key     noise.PublicKey `json:"executor_public_key"`
	}
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil || j.Profile != "noise_hybrid_ik_v1" || !bytes.Equal(j.Key.X25519, key.X25519) {
		t.Errorf("body %s: %v", got.body, err)
	}
}

func TestRegisterDirect(t *testing.T) {
	c, calls := fake(t, bearer(t), answer(200, `{"environment_id":"env-1","transport":"direct_jsonrpc_v1","registration_id":"r","url":"ws://127.0.0.1:1/"}`))
	r, err := c.RegisterDirect(t.Context())
	if err != nil || r != (Registration{"r", "ws://127.0.0.1:1/"}) {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got := (*calls)[0]; got.RequestURI != "/base/cloud/environment/env-1/direct/register" || got.body != `{"transport":"direct_jsonrpc_v1"}` {
		t.Errorf("%s %s", got.RequestURI, got.body)
	}
}

func TestValidate(t *testing.T) {
	status, text := 200, `{"valid":true,"x":1}`
	c, calls := fake(t, bearer(t), func(w http.ResponseWriter, r *http.Request) { answer(status, text)(w, r) })
	validate := func() error { return c.Validate(t.Context(), "reg", "str-ü", publicKey(t), `auth "é`) }
	if err := validate(); err != nil {
		t.Fatal(err)
	}
	got := (*calls)[0]
	if got.RequestURI != "/base/cloud/environment/env-1/validate" || got.Header.Get("X-Codex-Noise-Stream-Id") != "str-ü" {
		t.Errorf("%s %v", got.RequestURI, got.Header)
	}
	var j map[string]any
	if err := json.Unmarshal([]byte(got.body), &j); err != nil || len(j) != 3 ||
		j["executor_registration_id"] != "reg" || j["harness_key_authorization"] != `auth "é` {
		t.Errorf("body %s", got.body)
	}
	text = `{"valid":false}`
	if err := validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("not valid: %v", err)
	}
	for _, text = range []string{`{}`, `{"valid":1}`, `{"valid":null}`, `true`, ``, `{"valid":true} x`} {
		if err := validate(); !errors.Is(err, ErrAnswer) {
			t.Errorf("%q: %v", text, err)
		}
	}
	status = 401
	if e, ok := errors.AsType[*Error](validate()); !ok || e.Status != 401 {
		t.Errorf("401: %v", e)
	}
	n := len(*calls)
	if err := c.Validate(t.Context(), "reg", "a\r\nx: y", publicKey(t), ""); err == nil || len(*calls) != n {
		t.Errorf("a stream id with lines: %v", err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	var text string
	reply := func(w http.ResponseWriter, r *http.Request) { answer(200, text)(w, r) }
	open, _ := fake(t, bearer(t), reply)
	secret, _ := fake(t, scoped{bearer(t)}, reply)
	noiseAnswer := func(id, url, profile string) string {
		return `{"environment_id":"` + id + `","url":"` + url + `","security_profile":"` + profile + `","executor_registration_id":"r"}`
	}
	directAnswer := func(id, transport, registration, url string) string {
		return `{"environment_id":"` + id + `","transport":"` + transport + `","registration_id":"` + registration + `","url":"` + url + `"}`
	}
	for _, tt := range []struct {
		name, text, want string
		client           *Client
		direct           bool
	}{
		{name: "nothing", want: "JSON"},
		{name: "list", text: `[]`, want: "JSON"},
		{name: "more after it", text: registered + "x", want: "JSON"},
		{name: "no url", text: `{"environment_id":"env-1"}`, want: "missing field `url`"},
		{name: "number", text: `{"environment_id":1}`, want: "field `environment_id`"},
		{name: "null", text: `{"environment_id":null}`, want: "field `environment_id`"},
		{name: "other id", text: noiseAnswer("zz", "ws://h", securityProfile), want: "exec-server protocol error: environment registry returned a different environment id"},
		{name: "other profile", text: noiseAnswer("env-1", "ws://h", "zz"), want: "exec-server protocol error: environment registry returned unsupported security profile `zz`"},
		{name: "long url", text: noiseAnswer("env-1", strings.Repeat("u", maxField+1), securityProfile), want: "field `url`"},
		{name: "useless url", text: noiseAnswer("env-1", "", securityProfile)},
		{name: "ws", text: noiseAnswer("env-1", "ws://h", securityProfile)},
		{name: "scoped ws", client: secret, text: noiseAnswer("env-1", "ws://h", securityProfile), want: errInsecure.Error()},
		{name: "scoped ws here", client: secret, text: noiseAnswer("env-1", "ws://[::1]:1", securityProfile)},
		{name: "scoped wss", client: secret, text: noiseAnswer("env-1", "wss://h", securityProfile)},
		{name: "scoped other", client: secret, text: noiseAnswer("env-1", "https://h", securityProfile), want: errInsecure.Error()},
		{name: "direct", direct: true, text: directAnswer("env-1", directTransport, "r", "wss://h")},
		{name: "direct ws", direct: true, text: directAnswer("env-1", directTransport, "r", "ws://h"), want: errInsecure.Error()},
		{name: "direct no host", direct: true, text: directAnswer("env-1", directTransport, "r", "wss://"), want: errInsecure.Error()},
		{name: "direct other transport", direct: true, text: directAnswer("env-1", "zz", "r", "wss://h"), want: "exec-server protocol error: environment registry returned unsupported direct transport `zz`"},
		{name: "direct other id", direct: true, text: directAnswer("zz", directTransport, "r", "wss://h"), want: "exec-server protocol error: environment registry returned a different environment id"},
		{name: "direct no registration", direct: true, text: directAnswer("env-1", directTransport, "", "wss://h"), want: "exec-server protocol error: environment registry returned incomplete direct connection data"},
		{name: "direct missing", direct: true, text: registered, want: "missing field `transport`"},
		{name: "too long", text: registered + strings.Repeat(" ", maxAnswer), want: "more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text = tt.text
			c := tt.client
			if c == nil {
				c = open
			}
			var err error
			if tt.direct {
				_, err = c.RegisterDirect(t.Context())
			} else {
				_, err = c.RegisterNoise(t.Context(), publicKey(t))
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if err != nil && tt.name != "too long" && !errors.Is(err, ErrAnswer) {
				t.Errorf("%v is not ErrAnswer", err)
			}
		})
	}
}

func TestCompressedAnswers(t *testing.T) {
	zipped := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		z.Close()
		return b.Bytes()
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	bomb := registered + strings.Repeat(" ", 64<<20)
	for _, tt := range []struct {
		name, coding string
		body         []byte
		ok           bool
	}{
		{"gzip", "gzip", zipped(registered), true},
		{"zstd", "zstd", z.EncodeAll([]byte(registered), nil), true},
		{"gzip bomb", "gzip", zipped(bomb), false},
		{"zstd bomb", "zstd", z.EncodeAll([]byte(bomb), nil), false},
		{"no gzip", "gzip", []byte(registered), false},
		{"no zstd", "zstd", []byte(registered), false},
		{"other", "br", []byte(registered), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := fake(t, bearer(t), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", tt.coding)
				_, _ = w.Write(tt.body)
			})
			if _, err := c.RegisterNoise(t.Context(), publicKey(t)); (err == nil) != tt.ok {
				t.Error(err)
			}
		})
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Base: "http://127.0.0.1", EnvironmentID: "e", Credential: bearer(t), HTTP: deaf()}
		start := time.Now()
		_, err := c.RegisterNoise(t.Context(), publicKey(t))
		if err == nil || time.Since(start) != 10*time.Second {
			t.Errorf("ended after %v with %v", time.Since(start), err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(registered))
	f.Add([]byte(`{"environment_id":"a","url":"\ud800"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fields, err := parse(text, "environment_id", "url")
		if err == nil && len(fields) != 2 || err != nil && !errors.Is(err, ErrAnswer) {
			t.Errorf("%q gave %v, %v", text, fields, err)
		}
	})
}

// FuzzRead has bodies that say they are compressed.
func FuzzRead(f *testing.F) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("zstd", z.EncodeAll([]byte(registered), nil))
	z.Close()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	_, _ = g.Write([]byte(registered))
	g.Close()
	f.Add("gzip", b.Bytes())
	f.Add("identity", []byte(registered))
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		resp := &http.Response{Header: http.Header{"Content-Encoding": {coding}}, Body: io.NopCloser(bytes.NewReader(body))}
		if text, err := read(resp); len(text) > maxAnswer || err != nil && text != nil {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
}
