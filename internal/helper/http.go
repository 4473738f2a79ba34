package helper

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/exec-server/exec-server/internal/helper/httpclient"
	"github.com/exec-server/exec-server/internal/proto"
)

const (
	// MaxBody is the largest body, in bytes and decoded, of an answer that is not
	// streamed. The reference has no bound.
	MaxBody = 64 << 20
	// deltaSize is the largest piece of a stream; the protocol allows 1 MiB.
	deltaSize = 64 << 10
)

// HTTP returns what handles http/request.
func HTTP() func(*Call) {
	client := httpclient.New()
	return func(c *Call) {
		r, id, stream, err := decodeHTTP(c.Params)
		if err != nil {
			c.Answer(nil, err)
			return
		}
		resp, err := client.Do(context.Background(), r)
		if err != nil {
			c.Answer(nil, err)
			return
		}
		defer resp.Body.Close()
		if stream {
			c.Answer(httpResult{resp, nil}, nil)
			sendBody(c, id, resp.Body)
			return
		}
		body, err := readBody(resp.Body)
		c.Answer(httpResult{resp, body}, err)
	}
}

func decodeHTTP(v proto.Value) (r *httpclient.Request, id string, stream bool, err error) {
	p := proto.ParamsOf(v, "HttpRequestParams")
	r = &httpclient.Request{
		Method: p.String("method"),
		URL:    p.String("url"),
		Follow: p.Bool("follow"),
	}
	list := p.Required("headers")
	for i := range list.Len() {
		h := proto.ParamsOf(list.At(i), "HttpHeader")
		one := httpclient.Header{Name: h.String("name"), Value: h.String("value")}
		one.EnvVar, one.FromEnv = h.OptString("valueEnvVar")
		r.Headers = append(r.Headers, one)
		p.Join(h)
	}
	if ms, ok := p.OptUint("timeoutMs"); ok {
		r.Timed, r.Timeout = true, time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond)))*time.Millisecond
	}
	body := p.Required("bodyBase64")
	p.Text(body)
	id, stream = p.String("requestId"), p.Bool("streamResponse")
	if err := p.Err(); err != nil {
		return nil, "", false, err
	}
	r.Body, err = proto.DecodeBase64(body.Bytes())
	return r, id, stream, err
}

func readBody(body *httpclient.Body) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, MaxBody+1))
	if err == nil && len(data) > MaxBody {
		return nil, proto.Errorf(proto.CodeInternal, "failed to read http/request response body: it has more than %d bytes", MaxBody)
	}
	if err != nil {
		return nil, proto.Errorf(proto.CodeInternal, "failed to read http/request response body: %s", err)
	}
	return data, nil
}

// sendBody sends a body piece by piece as it comes.
func sendBody(c *Call, id string, body io.Reader) {
	buf := make([]byte, deltaSize)
	for seq := uint64(1); ; seq++ {
		n, err := body.Read(buf)
		if n > 0 {
			c.Notify(deltaFrame(id, seq, buf[:n], false, ""))
			continue
		}
		switch {
		case err == nil:
			seq--
			continue
		case errors.Is(err, io.EOF):
			c.Notify(deltaFrame(id, seq, nil, true, ""))
		default:
			c.Notify(deltaFrame(id, seq, nil, true, err.Error()))
		}
		return
	}
}

func deltaFrame(id string, seq uint64, data []byte, done bool, complaint string) proto.Frame {
	f := append(proto.NewFrame(160+len(id)+len(data)*4/3), `{"method":"http/request/bodyDelta","params":{"requestId":`...)
	f = append(proto.AppendString(f, id), `,"seq":`...)
	f = append(proto.AppendUint(f, seq), `,"deltaBase64":`...)
	f = append(proto.AppendBase64(f, data), `,"done":`...)
	f = append(proto.AppendBool(f, done), `,"error":`...)
	if complaint == "" {
		f = append(f, "null"...)
	} else {
		f = proto.AppendString(f, complaint)
	}
	return proto.Frame(append(f, "}}"...)).Seal()
}

// httpResult is the result of http/request.
type httpResult struct {
	resp *httpclient.Response
	body []byte
}

// SizeJSON implements proto.Sizer.
func (r httpResult) SizeJSON() int { return 1024 + len(r.body)*4/3 }

// AppendJSON implements proto.Result.
func (r httpResult) AppendJSON(dst []byte) []byte {
	dst = append(proto.AppendInt(append(dst, `{"status":`...), int64(r.resp.Status)), `,"headers":[`...)
	first := true
	r.resp.EachHeader(func(name, value string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(proto.AppendString(append(dst, `{"name":`...), name), `,"value":`...)
		dst = append(proto.AppendString(dst, value), '}')
	})
	return append(proto.AppendBase64(append(dst, `],"bodyBase64":`...), r.body), '}')
}
