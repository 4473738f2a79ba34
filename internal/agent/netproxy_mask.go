package agent

import (
	"maps"
	"os"
	"slices"

	"github.com/exec-server/exec-server/internal/proto"
)

const (
	maskingMode   = "masking"
	maskingMethod = "credential masking"
	// maxMasking bounds what a proxy is told of its command's credentials, in bytes.
	maxMasking = 256 << 10
)

// mask puts placeholders into a command's environment in the place of credentials.
// The credentials go to the command's proxy, which puts them back into requests.
// A helper program finds them, since what they look like is a foreign party's to
// say. A command whose credentials cannot be masked is not started.
func (p *proxyPlan) mask(c *conn, n *proxyParams, env map[string]string) error {
	if p == nil || n == nil || !n.masking {
		return nil
	}
	b := []byte(`{"env":{`)
	for i, name := range slices.Sorted(maps.Keys(env)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = proto.AppendString(append(proto.AppendString(b, name), ':'), env[name])
	}
	b = append(b, '}')
	if n.providers != nil {
		b = append(append(b, `,"providers":`...), n.providers...)
	}
	r, err := c.askHelper(helperSpec{mode: maskingMode}, maskingMethod, append(b, '}'), func(v proto.Value) bool { return isMasking(v, env) })
	if err != nil {
		return err
	}
	v, err := proto.Parse(r.AppendJSON(nil))
	if err != nil {
		return errHelperEnded(maskingMethod)
	}
	changed := v.Get("env")
	for i := range changed.Len() {
		env[changed.Key(i)] = changed.At(i).Str()
	}
	if v.Get("proxy").Kind != proto.Object {
		return nil // there are no credentials
	}
	p.config.Masking = v.Get("proxy").AppendJSON(nil)
	if p.bundle, err = c.server.writeBundle(v.Get("bundle").Str()); err != nil {
		return &proto.Error{Code: proto.CodeInternal, Kind: "spawnFailed", Message: "credential masking: " + err.Error()}
	}
	return nil
}

// isMasking says whether a helper's answer may be used: it changes variables that
// are there, and nothing else.
func isMasking(v proto.Value, env map[string]string) bool {
	changed, secrets := v.Get("env"), v.Get("proxy")
	if changed.Kind != proto.Object || v.Get("bundle").Kind != proto.String {
		return false
	}
	for i := range changed.Len() {
		if _, ok := env[changed.Key(i)]; !ok || changed.At(i).Kind != proto.String {
			return false
		}
	}
	return secrets.Kind == proto.Null || secrets.Kind == proto.Object && len(secrets.AppendJSON(nil)) <= maxMasking
}

// writeBundle makes a file that commands can read and not write.
func (s *Server) writeBundle(text string) (name string, err error) {
	asAgent(func() {
		var f *os.File
		if f, err = os.CreateTemp(s.opts.Dir, "exec-server-ca-*.pem"); err != nil {
			return
		}
		name = f.Name()
		_, err = f.WriteString(text)
		if err == nil {
			err = f.Chmod(0o444)
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			_ = os.Remove(name)
		}
	})
	return name, err
}

// release gives up what a command's plan has beside its process. It may be called
// more than once, and on nil.
func (p *proxyPlan) release() {
	if p != nil && p.bundle != "" {
		asAgent(func() { _ = os.Remove(p.bundle) })
	}
}

// asAgent runs f with the agent's own rights: a goroutine that is not locked to a
// thread is never on one that has given them up.
func asAgent(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
