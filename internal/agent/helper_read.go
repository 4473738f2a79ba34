package agent

import (
	"github.com/exec-server/exec-server/internal/proto"
)

// maxDelta is the largest piece of a stream, in bytes before base64.
const maxDelta = 1 << 20

// read takes what the helper sends until it ends or breaks the rules, and ends
// it then.
func (h *httpHelper) read(c *conn, link *helperLink) {
	for {
		f, err := link.in.ReadFrame()
		if err != nil || !h.take(c, f) {
			break
		}
	}
	link.end()
	h.mu.Lock()
	h.link = nil
	calls, streams := h.calls, h.streams
	h.calls, h.streams = nil, nil
	h.mu.Unlock()
	for _, call := range calls {
		delete(streams, call.stream) // it was not answered, and has no end
		call.err = errHelperEnded("http/request")
		close(call.done)
	}
	for id, seq := range streams {
		f := proto.AppendString(append(proto.NewFrame(256), `{"method":"http/request/bodyDelta","params":{"requestId":`...), id)
		f = proto.AppendUint(append(f, `,"seq":`...), seq+1)
		f = append(f, `,"deltaBase64":"","done":true,"error":"the helper program ended"}}`...)
		c.out.notify(proto.Frame(f).Seal())
	}
}

// take takes a message of the helper's. It is false if that is none that the
// helper may send.
func (h *httpHelper) take(c *conn, f proto.Frame) bool {
	v, err := proto.Parse(f.Body())
	if err != nil {
		return false
	}
	if v.Get("method").Kind != proto.Absent {
		if !h.delta(v) {
			return false
		}
		c.out.notify(f) // it is in the wire's own form
		return true
	}
	id, ok := v.Get("id").Uint64()
	if !ok {
		return false
	}
	h.mu.Lock()
	call := h.calls[id]
	delete(h.calls, id)
	h.mu.Unlock()
	if call == nil {
		return false
	}
	call.size = len(f)
	call.result, call.err = helperAnswer(id, f, v, "http/request", func(result proto.Value) bool { return isHTTPResult(result, call.opens) })
	if call.err != nil && call.opens {
		h.mu.Lock()
		delete(h.streams, call.stream)
		h.mu.Unlock()
	}
	close(call.done)
	if call.err == nil {
		select {
		case <-call.sent:
		case <-c.gone:
		}
	}
	return true
}

// delta judges a piece of a stream: whether it is the next of one that is open,
// and has the form that the protocol gives it.
func (h *httpHelper) delta(v proto.Value) bool {
	p := v.Get("params")
	id, data, done := p.Get("requestId"), p.Get("deltaBase64"), p.Get("done")
	seq, ok := p.Get("seq").Uint64()
	if v.Len() != 2 || v.Get("method").Str() != "http/request/bodyDelta" || p.Len() != 5 || !ok ||
		id.Kind != proto.String || !isBase64(data, maxDelta) || done.Kind != proto.True && done.Kind != proto.False {
		return false
	}
	last := done.Kind == proto.True
	complaint := p.Get("error")
	if complaint.Kind != proto.Null && (complaint.Kind != proto.String || !last) || last != (len(data.Raw()) == 0) {
		return false
	}
	name := id.Str()
	h.mu.Lock()
	defer h.mu.Unlock()
	before, open := h.streams[name]
	if !open || seq != before+1 {
		return false
	}
	for _, call := range h.calls {
		if call.opens && call.stream == name {
			return false // it has not been answered yet
		}
	}
	if h.streams[name] = seq; last {
		delete(h.streams, name) // now: the harness may use it again as soon as it knows
	}
	return true
}

// isHTTPResult tells whether v has the form of the result of http/request.
func isHTTPResult(v proto.Value, stream bool) bool {
	status, ok := v.Get("status").Uint64()
	headers, body := v.Get("headers"), v.Get("bodyBase64")
	if !ok || status < 100 || status > 999 || v.Len() != 3 || headers.Kind != proto.Array || !isBase64(body, maxHelperMessage) || stream && len(body.Raw()) > 0 {
		return false
	}
	for i := range headers.Len() {
		h := headers.At(i)
		if h.Len() != 2 || h.Get("name").Kind != proto.String || h.Get("value").Kind != proto.String {
			return false
		}
	}
	return true
}

// isBase64 tells whether v is a string in base64 of at most that many bytes.
func isBase64(v proto.Value, limit int) bool {
	text := v.Raw()
	if v.Kind != proto.String || len(text)%4 != 0 || len(text)/4*3 > limit+2 {
		return false
	}
	for i, c := range text {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '=' && i >= len(text)-2 && (i == len(text)-1 || text[i+1] == '='):
		default:
			return false
		}
	}
	return true
}
