package agent

import (
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/watch"
)

func decodeWatchMissing(v proto.Value) (operation, error) {
	r, err := watch.Decode(v)
	return operation{do: func(c *conn) (proto.Result, error) {
		return watching{c, c.watch.Start(r)}, nil
	}}, err
}

// watching is the answer to fs/watchMissing. The watch reports after it.
type watching struct {
	c *conn
	w *watch.Watch // nil if there is none
}

// AppendJSON implements proto.Result.
func (r watching) AppendJSON(dst []byte) []byte {
	return append(proto.AppendBool(append(dst, `{"watching":`...), r.w != nil), '}')
}

func (r watching) afterAnswer() {
	if r.w != nil {
		go r.w.Run(r.c.out.notify)
	}
}
