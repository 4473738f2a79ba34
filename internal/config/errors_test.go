package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestErrors has the exact lines: they are what a user has to work with.
func TestErrors(t *testing.T) {
	const v = "version = 1\n"
	for text, want := range map[string]string{
		"":                                             " version: missing; write version = 1 at the top",
		"version = 2":                                  "1:1: version: 2 is not known to this program; it reads version 1",
		v + "colour = 1":                               "2:1: colour: there is no such key",
		v + "[log]\nlewel = 'info'":                    "3:1: log.lewel: there is no such key; did you mean level?",
		v + "[nothing]\na = 1":                         "2:2: nothing: there is no such key",
		v + "profile = {a = {mem = 1}}":                "2:17: profile.a.mem: there is no such key; did you mean memory?",
		v + "root = 3":                                 "2:8: root: cannot decode TOML integer into a string",
		v + "[limits]\nenvironments = 'x'":             "3:16: limits.environments: cannot decode TOML string into a whole number",
		v + "limits.environments = 0":                  "2:1: limits.environments: 0 is less than 1",
		v + "log = 3":                                  "2:7: log: cannot decode TOML integer into a table",
		v + "[[log]]":                                  "2:3: log: cannot store an array table in a struct",
		v + "root = ":                                  "2:7: ",
		v + "root = '/a'\nroot = '/b'":                 "3:1: root: key root is already defined",
		v + "root = 'here'":                            `2:1: root: "here" is no absolute path of a directory below /`,
		v + "runtime = 'docker'":                       `2:1: runtime: "docker" is none of containerd, host`,
		v + "log.level = 'loud'":                       `2:1: log.level: "loud" is none of debug, info, warn, error`,
		v + "log.format = 'x'":                         `2:1: log.format: "x" is none of auto, text, json`,
		v + "listen.scope = 'x'":                       `2:1: listen.scope: "x" is none of environment, session`,
		v + "listen.url = 'ws://a:1'":                  `2:1: listen.url: "ws://a:1" is none of "ws://IP:PORT", "stdio" and "none"`,
		v + "metrics.url = 'https://a:1'":              `2:1: metrics.url: "https://a:1" is neither "http://IP:PORT" nor "none"`,
		v + "listen.environment_id = '-'":              `2:1: listen.environment_id: "-" is no name; use ` + nameHint,
		v + "listen.concurrent_requests=0":             "2:1: listen.concurrent_requests: 0 is not from 1 to 1024",
		v + "listen.auth.mode = 'x'":                   `2:1: listen.auth.mode: "x" is none of none, capability-token, signed-bearer-token`,
		v + "listen.auth.token = 'x'":                  "2:1: listen.auth.token: there is no such key; did you mean token_file or token_sha256?",
		v + "[listen.auth]\nissuer = 'x'":              `3:1: listen.auth.issuer: needs mode = "signed-bearer-token", and the mode is "none"`,
		v + "[listen.auth]\ntoken_file = '/x'":         `3:1: listen.auth.token_file: needs mode = "capability-token", and the mode is "none"`,
		v + "[listen.auth]\nmode = 'capability-token'": `3:1: listen.auth.mode: "capability-token" needs one of token_file and token_sha256`,
		v + "[listen.auth]\nmode = 'capability-token'\ntoken_file='/x'\ntoken_sha256='" + strings.Repeat("a", 64) + "'": `3:1: listen.auth.mode: "capability-token" needs one of token_file and token_sha256`,
		v + "[listen.auth]\nmode = 'capability-token'\ntoken_file = 'x'":                                                `4:1: listen.auth.token_file: "x" is no absolute path of a file`,
		v + "[listen.auth]\nmode = 'capability-token'\ntoken_sha256 = 'secret'":                                         `4:1: listen.auth.token_sha256: it has to be 64 hex digits`,
		v + "[listen.auth]\nmode = 'capability-token'\ntoken_file = '/x'\naudience = 'y'":                               `5:1: listen.auth.audience: needs mode = "signed-bearer-token", and the mode is "capability-token"`,
		v + "[listen.auth]\nmode = 'signed-bearer-token'":                                                               `3:1: listen.auth.mode: "signed-bearer-token" needs shared_secret_file`,
		v + "[listen.auth]\nmode = 'signed-bearer-token'\nshared_secret_file = 'x'":                                     `4:1: listen.auth.shared_secret_file: "x" is no absolute path of a file`,
		v + "[listen.auth]\nmode = 'signed-bearer-token'\ntoken_sha256 = 'x'":                                           `4:1: listen.auth.token_sha256: needs mode = "capability-token", and the mode is "signed-bearer-token"`,
		v + "[listen.auth]\nmax_clock_skew = '1.5s'":                                                                    `3:1: listen.auth.max_clock_skew: 1.5s is not from 0s to 24h in whole seconds`,
		v + "[listen.auth]\nmax_clock_skew = '-1s'":                                                                     `3:1: listen.auth.max_clock_skew: -1s is not from 0s to 24h in whole seconds`,
		v + "containerd.address = 'x'":                                                                                  `2:1: containerd.address: "x" is no absolute path of a socket`,
		v + "containerd.runc = 'runc'":                                                                                  `2:1: containerd.runc: "runc" is no absolute path of a program`,
		v + "session.detach = '-1s'":                                                                                    "2:1: session.detach: -1s is not from 0s to 720h",
		v + "\n[session]\ndetach = 80":                                                                                  `4:1: session.detach: "80" is no duration; write a number with a unit, such as "500ms", "80s" or "5m"`,
		v + "session.keep_closed = 'soon'":                                                                              `2:23: session.keep_closed: "soon" is no duration; write a number with a unit, such as "500ms", "80s" or "5m"`,
		v + "session.output_bytes = '1B'":                                                                               `2:24: session.output_bytes: "1B" is no size; write a number of bytes or a whole number with KiB, MiB, GiB or TiB`,
		v + "session.output_bytes = 1":                                                                                  "2:1: session.output_bytes: 1 is not from 4KiB to 1GiB",
		v + "default_profile = 'x'":                                                                                     "2:1: default_profile: there is no [profile.x]",
		v + "[profile.'a b']":                                                                                           `2:2: profile.a b: "a b" is no name; use ` + nameHint,
		v + "[profile.a]\ncpus = -1":                                                                                    "3:1: profile.a.cpus: -1 is not from 0 (no limit) to 4096",
		v + "[profile.a]\ncpus = nan":                                                                                   "3:1: profile.a.cpus: NaN is not from 0 (no limit) to 4096",
		v + "[profile.a]\ncpus = 0.001":                                                                                 "3:1: profile.a.cpus: 0.001 is less than 0.01, the least that the kernel can share out",
		v + "[profile.a]\ncpus = 'two'":                                                                                 "3:8: profile.a.cpus: cannot decode TOML string into a number",
		v + "[profile.a]\nmemory = '4GB'":                                                                               `3:10: profile.a.memory: "4GB" is no size; write a number of bytes or a whole number with KiB, MiB, GiB or TiB`,
		v + "[profile.a]\nmemory = 1.5":                                                                                 `3:1: profile.a.memory: "1.5" is no size; write a number of bytes or a whole number with KiB, MiB, GiB or TiB`,
		v + "[profile.a]\nmemory = [1]":                                                                                 "3:10: profile.a.memory: cannot decode TOML array into a size",
		v + "[profile.a]\nmemory = '1MiB'":                                                                              "3:1: profile.a.memory: 1MiB is neither 0 (no limit) nor at least 16MiB",
		v + "[profile.a]\nmemory = -1":                                                                                  "3:1: profile.a.memory: -1 is neither 0 (no limit) nor at least 16MiB",
		v + "[profile.a]\npids = 1":                                                                                     "3:1: profile.a.pids: 1 is neither 0 (no limit) nor at least 16",
		v + "[profile.a]\nshm_size = 0":                                                                                 "3:1: profile.a.shm_size: 0 is less than 64KiB",
		v + "[profile.a]\nuser = 'a b'":                                                                                 `3:1: profile.a.user: "a b" is none of "name", "uid", "name:group", "uid:gid"`,
		v + "[profile.a]\ncwd = 'x'":                                                                                    `3:1: profile.a.cwd: "x" is no absolute path`,
		v + "[profile.a]\nimage = 'a b'":                                                                                `3:1: profile.a.image: "a b" has blanks in it`,
		v + "[profile.a.env]\n'A=B' = '1'":                                                                              "3:1: profile.a.env.A=B: no variable can have that name or value",
		v + "[profile.a.env]\nA = 1":                                                                                    "3:5: profile.a.env.A: cannot decode TOML integer into a string",
	} {
		_, err := load(t, text)
		if err == nil {
			t.Errorf("%q loads", text)
			continue
		}
		_, got, _ := strings.Cut(err.Error(), ".toml:")
		if got != want && (!strings.HasSuffix(want, ": ") || !strings.HasPrefix(got, want)) || strings.Contains(got, "\n") {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.toml"))
	if err == nil || !strings.HasPrefix(err.Error(), "read the configuration: open ") {
		t.Error(err)
	}
}

// FuzzParse looks for panics: the index leans on the decoder's unstable half.
func FuzzParse(f *testing.F) {
	f.Add(defaults)
	f.Add([]byte("version = 1\n\"\\n\" = 1"))
	f.Add([]byte("version = 1\n[[profile.a.network.rule]]\nallow = ['x']\nports = [1, '2-3']\n[profile.b]\nnetwork.rule = [{ deny = ['y'] }, {}]"))
	f.Add([]byte("version = 1\n[profile.a]\nmemory = 1.5\nenv = { A = '1' }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parse(data); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	})
}
