package policy

import (
	"github.com/exec-server/exec-server/internal/proto"
)

// Protocols that decisions and questions tell apart.
const (
	HTTP      = "http"
	Connect   = "https_connect"
	SOCKS5TCP = "socks5_tcp"
	SOCKS5UDP = "socks5_udp"
)

// Target is what a command wants to reach.
type Target struct {
	Protocol string
	Host     string
	Port     uint16
}

// Decision is what was decided about one request.
type Decision struct {
	Target
	Scope   string // domain or non_domain
	Verdict string // allow, deny or ask
	Source  string // baseline_policy, decider, mode_guard or proxy_state
	Reason  string
	Method  string // of HTTP; "" for SOCKS
	Client  string // address and port of the command's end
	// Override is set if the client allowed what no rule allows.
	Override bool
}

// maxText bounds what a proxy process may have a client read in one member.
const maxText = 1024

// Valid says whether a decision that came from a proxy process, which is no
// more to be trusted than the command beside it, may be passed on.
func (d *Decision) Valid() bool {
	return d.Target.Valid() &&
		(d.Scope == "domain" || d.Scope == "non_domain") &&
		(d.Verdict == "allow" || d.Verdict == "deny" || d.Verdict == "ask") &&
		(d.Source == "baseline_policy" || d.Source == "decider" || d.Source == "mode_guard" || d.Source == "proxy_state") &&
		len(d.Reason) <= maxText && len(d.Method) <= maxText && len(d.Client) <= maxText
}

// Valid is like Decision.Valid.
func (t *Target) Valid() bool {
	return (t.Protocol == HTTP || t.Protocol == Connect || t.Protocol == SOCKS5TCP || t.Protocol == SOCKS5UDP) &&
		t.Host != "" && len(t.Host) <= maxHost
}

// AppendMembers appends the members that a decision has in a notification to
// the client, in the reference's order, without braces.
func (d *Decision) AppendMembers(b []byte) []byte {
	text := func(name, value string) {
		b = proto.AppendString(append(append(append(b, '"'), name...), `":`...), value)
		b = append(b, ',')
	}
	text("scope", d.Scope)
	text("decision", d.Verdict)
	text("source", d.Source)
	text("reason", d.Reason)
	b = append(d.AppendTarget(b), ',')
	if d.Method != "" {
		text("method", d.Method)
	}
	text("client", d.Client)
	return proto.AppendBool(append(b, `"policyOverride":`...), d.Override)
}

// AppendTarget appends a target's members, without braces.
func (t *Target) AppendTarget(b []byte) []byte {
	b = proto.AppendString(append(b, `"protocol":`...), t.Protocol)
	b = proto.AppendString(append(b, `,"host":`...), t.Host)
	return proto.AppendUint(append(b, `,"port":`...), uint64(t.Port))
}

// Frame is a decision as the request of a proxy process, which waits for the
// answer: what was decided is told before the command can notice it.
func (d *Decision) Frame(id uint64) proto.Frame {
	f := proto.AppendUint(append(proto.NewFrame(512), `{"id":`...), id)
	f = d.AppendMembers(append(f, `,"method":"decision","params":{`...))
	return proto.Frame(append(f, "}}"...)).Seal()
}

// ParseDecision reads the params of such a request.
func ParseDecision(params proto.Value) (Decision, error) {
	p := proto.ParamsOf(params, "Decision")
	d := Decision{Target: target(p), Scope: p.String("scope"), Verdict: p.String("decision"), Source: p.String("source"),
		Reason: p.String("reason"), Client: p.String("client"), Override: p.Bool("policyOverride")}
	d.Method, _ = p.OptString("method")
	if !d.Valid() {
		p.Fail(proto.BadParams("not a decision"))
	}
	return d, p.Err()
}

func target(p *proto.Params) Target {
	t := Target{Protocol: p.String("protocol"), Host: p.String("host")}
	port := p.Uint("port")
	if port > 1<<16-1 {
		p.Fail(proto.BadParams("not a port"))
	}
	t.Port = uint16(port)
	return t
}
