package proto

import (
	"errors"
	"strconv"
)

// MessageKind tells the four kinds of messages apart.
type MessageKind uint8

// The kinds of messages.
const (
	Request MessageKind = iota
	Notification
	Answer
)

// Message is a decoded envelope. It points into the text that it was parsed
// from.
type Message struct {
	Kind   MessageKind
	ID     Value
	Method string
	Params Value // Absent or Null where there are none
	Result Value // of an Answer; Absent if it is an error
}

var errNotRPC = errors.New("expected a JSON-RPC object")

// ParseMessage decodes one message. The rules are those of the reference, which
// looks at the shape of an object only: unknown members, a jsonrpc member
// included, do not matter.
func ParseMessage(text []byte) (Message, error) {
	v, err := Parse(text)
	if err != nil {
		return Message{}, err
	}
	if v.Kind != Object {
		return Message{}, errNotRPC
	}
	method, id := v.Get("method"), v.Get("id")
	if t := v.Get("trace"); t.Kind != Absent && t.Kind != Null && t.Kind != Object {
		return Message{}, errNotRPC
	}
	if id.Kind != Absent && !validID(id) {
		return Message{}, errNotRPC
	}
	m := Message{ID: id, Params: v.Get("params")}
	switch {
	case method.Kind == String:
		m.Method = method.Str()
		if id.Kind == Absent {
			m.Kind = Notification
		}
		return m, nil
	case method.Kind != Absent || id.Kind == Absent:
		return Message{}, errNotRPC
	}
	m.Kind = Answer
	if m.Result = v.Get("result"); m.Result.Kind != Absent {
		return m, nil
	}
	if e := v.Get("error"); e.Kind != Object || e.Get("code").Kind != Number || e.Get("message").Kind != String {
		return Message{}, errNotRPC
	}
	return m, nil
}

func validID(id Value) bool {
	if id.Kind == Number {
		_, ok := id.Int64()
		return ok
	}
	return id.Kind == String
}

// Result is the result of a request. It is written straight into the frame that
// carries it.
type Result interface {
	// AppendJSON appends the result as JSON text.
	AppendJSON(dst []byte) []byte
}

// Empty is the result {}.
type Empty struct{}

// AppendJSON implements Result.
func (Empty) AppendJSON(dst []byte) []byte { return append(dst, "{}"...) }

// JSON is a result that is JSON text already.
type JSON []byte

// AppendJSON implements Result.
func (j JSON) AppendJSON(dst []byte) []byte { return append(dst, j...) }

// Sizer is a Result that knows about how many bytes it will take.
type Sizer interface{ SizeJSON() int }

// ResultFrame is the answer to the request with that id.
func ResultFrame(id Value, r Result) Frame {
	size := 512
	if s, ok := r.(Sizer); ok {
		size = 64 + s.SizeJSON()
	}
	f := append(NewFrame(size), `{"id":`...)
	f = append(appendID(f, id), `,"result":`...)
	f = r.AppendJSON(f)
	return Frame(append(f, '}')).Seal()
}

// ErrorFrame is the error answer to the request with that id. The zero Value
// stands for a message that had no usable id.
func ErrorFrame(id Value, e *Error) Frame {
	f := append(NewFrame(128+len(e.Message)), `{"error":{"code":`...)
	f = strconv.AppendInt(f, int64(e.Code), 10)
	if e.Kind != "" {
		f = append(f, `,"data":{"kind":`...)
		f = append(AppendString(f, e.Kind), '}')
	}
	f = append(f, `,"message":`...)
	f = append(AppendString(f, e.Message), `},"id":`...)
	if id.Kind == Absent {
		f = append(f, "-1"...)
	} else {
		f = appendID(f, id)
	}
	return Frame(append(f, '}')).Seal()
}

func appendID(dst []byte, id Value) []byte {
	if id.Kind == String {
		return append(append(append(dst, '"'), id.text...), '"')
	}
	return append(dst, id.text...)
}
