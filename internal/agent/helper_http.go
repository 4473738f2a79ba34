package agent

import (
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxStreams is how many response streams a connection may have. Each takes a
// goroutine and a descriptor of the helper.
const maxStreams = 256

// httpRequest is what http/request asks for. Its params are in the form in which
// the helper takes them: complete, and decoded as far as their types go. What
// they say is for the helper to judge.
type httpRequest struct {
	params []byte
	id     string
	stream bool
}

func decodeHTTP(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "HttpRequestParams")
	r := &httpRequest{}
	method, url := p.String("method"), p.String("url")
	headers, ok := httpHeaders(p, v.Get("headers"))
	body := p.Nullable("bodyBase64")
	p.Text(body)
	timeout, timed := p.OptUint("timeoutMs")
	follow := true
	if policy := v.Get("redirectPolicy"); policy.Kind != proto.Absent {
		follow = p.Variant(policy, "follow", "stop") == "follow"
	}
	r.id = p.String("requestId")
	r.stream = p.BoolOr("streamResponse", false)
	data := body.Bytes()
	if _, err := proto.DecodeBase64(data); err != nil {
		p.Fail(proto.BadParams("%s", err))
	}
	if err := p.Err(); err != nil || !ok {
		return operation{}, err
	}
	b := make([]byte, 0, 256+len(url)+len(headers)+len(data))
	b = proto.AppendString(append(b, `{"method":`...), method)
	b = proto.AppendString(append(b, `,"url":`...), url)
	b = append(append(b, `,"headers":`...), headers...)
	b = append(append(append(b, `,"bodyBase64":"`...), data...), `","follow":`...)
	b = proto.AppendBool(b, follow)
	if timed {
		b = proto.AppendUint(append(b, `,"timeoutMs":`...), timeout)
	}
	b = proto.AppendString(append(b, `,"requestId":`...), r.id)
	b = proto.AppendBool(append(b, `,"streamResponse":`...), r.stream)
	r.params = append(b, '}')
	return operation{do: r.do, waits: func(*conn) bool { return true }}, nil
}

// httpHeaders renders the headers for the helper.
func httpHeaders(p *proto.Params, list proto.Value) (text []byte, ok bool) {
	if list.Kind != proto.Absent && list.Kind != proto.Array {
		p.Strings(list) // has the words
		return nil, false
	}
	text = append(text, '[')
	for i := range list.Len() {
		h := proto.ParamsOf(list.At(i), "HttpHeader")
		if i > 0 {
			text = append(text, ',')
		}
		text = proto.AppendString(append(text, `{"name":`...), h.String("name"))
		text = proto.AppendString(append(text, `,"value":`...), h.String("value"))
		if variable, ok := h.OptString("valueEnvVar"); ok {
			text = proto.AppendString(append(text, `,"valueEnvVar":`...), variable)
		}
		text = append(text, '}')
		p.Join(h)
	}
	return append(text, ']'), true
}

func (r *httpRequest) do(c *conn) (proto.Result, error) {
	call, link, err := c.http.begin(c, r)
	if err != nil {
		return nil, err
	}
	link.send(call.id, "http/request", r.params)
	select {
	case <-call.done:
	case <-c.gone:
		return nil, errHelperEnded("http/request")
	}
	if call.err != nil {
		return nil, call.err
	}
	return httpAnswer{call}, nil
}

// httpAnswer is the answer to http/request. The helper is read on after it, so
// that the first piece of a stream does not come before.
type httpAnswer struct{ call *httpCall }

// SizeJSON implements proto.Sizer.
func (a httpAnswer) SizeJSON() int { return a.call.size }

// AppendJSON implements proto.Result.
func (a httpAnswer) AppendJSON(dst []byte) []byte { return a.call.result.AppendJSON(dst) }

func (a httpAnswer) afterAnswer() { close(a.call.sent) }

// httpCall is a request that the helper works on.
type httpCall struct {
	id     uint64
	stream string // the stream that it opens, if streams
	opens  bool

	done   chan struct{} // closed when the fields below are set
	result proto.Result  // valid until sent is closed
	size   int
	err    error
	sent   chan struct{} // closed when the result has been sent
}

// httpHelper is a connection's helper for http/request. It is started by the
// first request, and again if it ended, and ends with the connection.
type httpHelper struct {
	mu      sync.Mutex // guards all below
	link    *helperLink
	over    bool // the connection has ended
	last    uint64
	calls   map[uint64]*httpCall
	streams map[string]uint64 // seq of the last piece
}

// begin registers a request, and starts the helper if there is none.
func (h *httpHelper) begin(c *conn, r *httpRequest) (*httpCall, *helperLink, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, active := h.streams[r.id]; active && r.stream {
		return nil, nil, proto.BadParams("http/request streamResponse requestId `%s` is already active", r.id)
	}
	if r.stream && len(h.streams) >= maxStreams {
		return nil, nil, proto.Errorf(proto.CodeInternal, "http/request failed: %d response streams are open on this connection, which is the limit", maxStreams)
	}
	if h.over {
		return nil, nil, errHelperEnded("http/request")
	}
	if h.link == nil {
		link, err := c.server.startHelper(helperSpec{mode: "http"})
		if err != nil {
			return nil, nil, proto.Errorf(proto.CodeInternal, "http/request failed: %s", err)
		}
		h.link, h.calls, h.streams = link, make(map[uint64]*httpCall), make(map[string]uint64)
		go h.read(c, link)
	}
	h.last++
	call := &httpCall{id: h.last, stream: r.id, opens: r.stream, done: make(chan struct{}), sent: make(chan struct{})}
	h.calls[call.id] = call
	if r.stream {
		h.streams[r.id] = 0
	}
	return call, h.link, nil
}

// end hangs up on the helper because the connection has ended.
func (h *httpHelper) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.link != nil {
		h.link.hangUp()
	}
}
