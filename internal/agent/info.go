package agent

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/proto"
)

// ExecutorVersion is the version of the reference whose protocol this is.
const ExecutorVersion = "0.171.0"

// capabilities lists the flags of environment/info, and what makes each true: a
// flag is true only if what it promises works here.
var capabilities = []struct {
	name string
	on   condition
}{
	{"networkProxyLaunch", withHelper},
	{"networkProxyReviewDomains", withHelper},
	{"networkProxyTransparentTcp", withSteering},
	{"credentialMasking", withHelper},
	{"credentialMaskingCustomProviders", withHelper},
	{"capabilityDiscoverySandbox", withConfinement},
	{"fsWatchMissing", always},
	{"capabilityDiscoveryV2", withHelper},
	{"environmentConfigRead", withHelper},
	{"httpHeaderEnvVars", withHelper},
	{"sandboxedFileStreaming", withConfinement},
	{"fileWriteStreaming", always},
	{"shellSnapshotV2", always},
	{"windowsMxc", never},
}

// condition tells whether a flag is true.
type condition func(*Server) bool

func always(*Server) bool          { return true }
func never(*Server) bool           { return false }
func withHelper(s *Server) bool    { return s.opts.Helper != "" }
func withConfinement(*Server) bool { return confine.Supported() }
func withSteering(s *Server) bool  { return withHelper(s) && confine.Supported() && steerable() }

// info is the result of environment/info.
func (s *Server) info() proto.JSON {
	o := &s.opts
	shell := o.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	b := append([]byte(nil), `{"shell":{"name":`...)
	b = append(proto.AppendString(b, shellName(shell)), `,"path":`...)
	b = append(proto.AppendString(b, shell), `},"executorVersion":"`+ExecutorVersion+`","providerId":"sha256:`...)
	host, _ := os.Hostname()
	b = fmt.Appendf(b, `%x","cwd":`, sha256.Sum256([]byte("exec-server\x00"+host)))
	if st, err := os.Stat(o.Cwd); err == nil && st.IsDir() {
		b = proto.AppendURI(b, o.Cwd)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"userHomeDir":`...)
	b = append(proto.AppendURI(b, s.home()), `,"platformOs":"linux","prependPathDirs":[],"temporaryDirectories":[`...)
	temp := "/tmp"
	if dir := s.getenv("TMPDIR"); dir != "" {
		if !path.IsAbs(dir) {
			dir = path.Join(o.Cwd, dir)
		}
		temp = dir
		b = proto.AppendURI(b, dir)
	}
	b = append(b, `],"tempDir":`...)
	b = append(proto.AppendURI(b, temp), `,"capabilities":{`...)
	for i, c := range capabilities {
		if i > 0 {
			b = append(b, ',')
		}
		b = proto.AppendBool(append(proto.AppendString(b, c.name), ':'), c.on(s))
	}
	return append(b, "}}"...)
}

// home is the user's home directory: $HOME, and the passwd database's without it.
func (s *Server) home() string {
	if dir := s.getenv("HOME"); path.IsAbs(dir) {
		return dir
	}
	return s.opts.Home
}

func (s *Server) getenv(name string) string {
	for _, pair := range s.opts.Env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// shellName is the word for a shell that harnesses know. They run a shell of
// their own machine for any other word, and dash and ash are plain sh to them.
func shellName(file string) string {
	switch name := path.Base(file); name {
	case "bash", "zsh":
		return name
	}
	return "sh"
}
