package control

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/exec-server/exec-server/internal/proto"
)

// request is what a connection to the socket begins with.
type request struct {
	c    proto.Conn
	b    Backend
	id   proto.Value
	body []byte // valid until c is read again

	answered bool
}

// requests has what can be asked for. An error is the answer, unless there was one.
var requests = map[string]func(context.Context, *request) error{
	"run":     run,
	"env.add": addEnvironment,
	"env.rm":  removeEnvironment,
	"env.ls":  listEnvironments,

	"env.policy.get":     getPolicy,
	"env.policy.set":     setPolicy,
	"env.policy.explain": explainPolicy,
}

func (r *request) answer(result proto.Result) error {
	r.answered = true
	return r.c.WriteFrames(proto.ResultFrame(r.id, result))
}

// answered makes a handler of what takes params and gives one answer.
func answered[P, R any](do func(context.Context, Backend, P) (R, error)) func(context.Context, *request) error {
	return func(ctx context.Context, r *request) error {
		var whole struct{ Params json.RawMessage }
		var params P
		err := json.Unmarshal(r.body, &whole)
		if err == nil {
			d := json.NewDecoder(bytes.NewReader(whole.Params))
			d.DisallowUnknownFields()
			err = d.Decode(&params)
		}
		if err != nil {
			return err
		}
		result, err := do(ctx, r.b, params)
		if err != nil {
			return err
		}
		text, err := json.Marshal(result)
		if err != nil {
			return err
		}
		return r.answer(proto.JSON(text))
	}
}

func run(ctx context.Context, r *request) error {
	m, err := proto.ParseMessage(r.body)
	if err != nil {
		return err
	}
	t, err := parseThrowaway(m.Params)
	if err != nil {
		return err
	}
	return r.b.ServeThrowaway(ctx, r.c, t, func() error { return r.answer(proto.Empty{}) })
}

func parseThrowaway(v proto.Value) (Throwaway, error) {
	p := proto.ParamsOf(v, "Throwaway")
	t := Throwaway{
		Profile: p.String("profile"), Image: p.String("image"), User: p.String("user"), Cwd: p.String("cwd"),
		Env: p.Strings(p.Nullable("env")),
	}
	t.Network, _ = p.OptString("network") // which earlier programs do not say
	return t, p.Err()
}
