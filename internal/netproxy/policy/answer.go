package policy

import (
	"github.com/exec-server/exec-server/internal/proto"
)

// QuestionFrame is the request with which a proxy process asks about a target.
func QuestionFrame(id uint64, t *Target) proto.Frame {
	f := proto.AppendUint(append(proto.NewFrame(256), `{"id":`...), id)
	f = t.AppendTarget(append(f, `,"method":"ask","params":{`...))
	return proto.Frame(append(f, "}}"...)).Seal()
}

// ParseQuestion reads the params of such a request.
func ParseQuestion(params proto.Value) (Target, error) {
	p := proto.ParamsOf(params, "Question")
	t := target(p)
	if !t.Valid() {
		p.Fail(proto.BadParams("not a question"))
	}
	return t, p.Err()
}

// Answer is what a client says to a question.
type Answer struct {
	Verdict string // allow, deny or ask
	Reason  string // of deny and ask
}

// NoAnswer stands for an error, an answer of another shape, and none in time.
var NoAnswer = Answer{Verdict: "deny", Reason: NotAllowed}

// ParseAnswer reads the result that a client gave; anything that is not an
// answer is NoAnswer.
func ParseAnswer(result proto.Value) Answer {
	d := result.Get("decision")
	kind, reason := d.Get("type"), d.Get("reason")
	switch a := (Answer{Verdict: kind.Str(), Reason: reason.Str()}); {
	case kind.Kind != proto.String:
		return NoAnswer
	case a.Verdict == "allow":
		return Answer{Verdict: "allow"}
	case a.Verdict != "deny" && a.Verdict != "ask" || reason.Kind != proto.String:
		return NoAnswer
	case a.Reason == "":
		return Answer{Verdict: a.Verdict, Reason: PolicyDenied}
	default:
		a.Reason = shortened(a.Reason)
		return a
	}
}

func shortened(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText]
}

// AppendJSON implements proto.Result: an answer in the form that ParseAnswer
// reads.
func (a Answer) AppendJSON(b []byte) []byte {
	b = proto.AppendString(append(b, `{"decision":{"type":`...), a.Verdict)
	b = proto.AppendString(append(b, `,"reason":`...), a.Reason)
	return append(b, "}}"...)
}
