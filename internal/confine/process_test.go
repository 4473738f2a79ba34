package confine_test

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

func TestNoPrivileges(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		out, _, _ := p.run(p.files(readAll), "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; cat /proc/self/uid_map | wc -l; mount -t tmpfs x /mnt 2>&1 | grep -o denied; chroot / true 2>/dev/null || echo no chroot")
		want := `CapInh:	0000000000000000
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapBnd:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
1
`
		if !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "no chroot\n") {
			t.Error(out)
		}
	})
}

func TestProcessesOfTheirOwn(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		s := p.files(readAll)
		p.expect(s, "[ $(ls -d /proc/[0-9]* | wc -l) -le 5 ] && echo alone; echo $$; (kill -9 1) 2>/dev/null; echo still here", "alone\n2\nstill here\n")
		if out, code, _ := p.run(s, "kill -TERM $$; sleep 5"); code != 143 || out != "" {
			t.Errorf("a signal: %d %s", code, out)
		}
		// What it leaves running ends with it, and so do the streams.
		begun := time.Now()
		if out, code, _ := p.run(s, "setsid sleep 60 & (sleep 60; echo late) & echo ok"); out != "ok\n" || code != 0 || time.Since(begun) > 20*time.Second {
			t.Errorf("%d %s after %s", code, out, time.Since(begun))
		}
	})
}

func TestTerminal(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		out, code, _ := p.start(p.files(readAll), process.Spec{Argv: []string{"/bin/sh", "-c", "tty; stty size; echo hi >/dev/tty; [ -t 0 ] && ls /dev/pts"}, Cwd: p.dir, TTY: true})
		if code != 0 || out != "/dev/console\r\n24 80\r\nhi\r\nptmx\r\n" {
			t.Errorf("%d %q", code, out)
		}
	})
}

func TestNetwork(t *testing.T) {
	const script = `python3 - <<'E'
import socket, os
def t(name, f):
    try: f(); print(name, "ok")
    except OSError as e: print(name, e.strerror)
t("inet", lambda: socket.socket(socket.AF_INET))
t("inet6", lambda: socket.socket(socket.AF_INET6))
t("unix", lambda: socket.socket(socket.AF_UNIX))
t("bind", lambda: socket.socket(socket.AF_UNIX).bind("\0x%d" % os.getpid()))
t("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
t("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM))
def pair():
    a, b = socket.socketpair()
    os.write(a.fileno(), b"x")
    assert os.read(b.fileno(), 1) == b"x"
t("pair", pair)
E
readlink /proc/self/ns/net`
	asEachUser(t, "true", func(p place) {
		outside, _, _ := p.run(nil, "readlink /proc/self/ns/net")
		cut := "inet Operation not permitted\ninet6 Operation not permitted\nunix ok\nbind Operation not permitted\nnetlink Operation not permitted\npacket Operation not permitted\npair ok\n"
		out, _, _ := p.run(p.files(readAll), script)
		if !strings.HasPrefix(out, cut) || strings.HasSuffix(out, outside) {
			t.Errorf("restricted: %s", out)
		}
		// Only the network is taken away: nothing else changes.
		out, _, _ = p.run(&proto.Sandbox{}, script+"; grep NSpid /proc/self/status | wc -w; echo x >f && echo written")
		if out != cut+outside+"2\nwritten\n" {
			t.Errorf("only the network restricted: %s", out)
		}
		open := p.files(readAll)
		open.Network = true
		out, _, _ = p.run(open, script)
		if out != "inet ok\ninet6 ok\nunix ok\nbind ok\nnetlink ok\npacket Operation not permitted\npair ok\n"+outside {
			t.Errorf("enabled: %s", out)
		}
	})
}

func TestUnconfinedProfiles(t *testing.T) {
	asEachUser(t, "mkdir .git", func(p place) {
		all := p.files(special("root", "write"), projects)
		all.Network = true
		for name, s := range map[string]*proto.Sandbox{"disabled": {Network: true}, "all written": all} {
			out, code, denied := p.run(s, "grep -E '^(NoNew|Seccomp:)' /proc/self/status; echo x >.git/x && echo permission denied; exit 3")
			if out != "NoNewPrivs:\t0\nSeccomp:\t0\npermission denied\n" || code != 3 || denied {
				t.Errorf("%s: %d %t %s", name, code, denied, out)
			}
		}
	})
}

func TestDenialIsGuessed(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		s := p.files(readAll)
		for script, want := range map[string]bool{
			"echo Operation not permitted; exit 1":          true,
			"printf 'permission '; printf 'denied'; exit 5": true,
			"echo READ-ONLY FILE SYSTEM; exit 127":          true,
			"echo seccomp >&2; exit 3":                      true,
			"echo some sandbox text; exit 4":                true,
			"echo landlock; exit 6":                         true,
			"echo Failed to write file; exit 7":             true,
			"echo nothing special; exit 1":                  false,
			"echo permission denied; exit 0":                false,
			"printf 'permission '; echo denied >&2; exit 1": false,
			"exit 2": false, "exit 126": false, "exit 127": false, "exit 159": true,
		} {
			if _, _, denied := p.run(s, script); denied != want {
				t.Errorf("%s: %t", script, denied)
			}
		}
	})
}

func TestWhatCannotBeExecuted(t *testing.T) {
	asEachUser(t, "printf 'echo hi' >script; chmod +x script; echo >plain", func(p place) {
		for name, want := range map[string]string{
			"/no/such": "No such file or directory (os error 2)", "nosuch": "No such file or directory (os error 2)", "": "No such file or directory (os error 2)",
			p.dir + "/plain": "Permission denied (os error 13)", "./script": "Exec format error (os error 8)",
		} {
			for _, tty := range []bool{false, true} {
				out, code, denied := p.start(p.files(readAll), process.Spec{Argv: []string{name}, Cwd: p.dir, TTY: tty})
				out = strings.ReplaceAll(out, "\r", "")
				if code != 101 || !denied || out != "exec-server: cannot execute "+name+" in its sandbox: "+want+"\n" {
					t.Errorf("%q: %d %t %q", name, code, denied, out)
				}
			}
		}
		legacy := p.files(readAll)
		legacy.LegacyLandlock = true
		if _, code, denied := p.run(legacy, "true"); code != 101 || !denied {
			t.Errorf("legacy: %d %t", code, denied)
		}
	})
}

func TestTheOnlyWayOutIsTheProxy(t *testing.T) {
	const script = `python3 - <<'E'
import socket
def t(name, f):
    try: print(name, f() or "ok")
    except OSError as e: print(name, e.strerror)
import os
t("proxy", lambda: socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))).recv(9).decode())
t("own", lambda: socket.socket().bind(("127.0.0.1", 0)))
t("out", lambda: socket.create_connection(("192.0.2.1", 80)))
t("outer", lambda: socket.create_connection(("127.0.0.1", int(os.environ["OUTER"]))))
t("unix", lambda: socket.socket(socket.AF_UNIX))
t("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
t("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
t("pair", lambda: [s.close() for s in socket.socketpair()] and None)
E
grep NSpid /proc/self/status | wc -w; (echo x >f && echo written) 2>/dev/null`
	asEachUser(t, "true", func(p place) {
		outer, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		for name, s := range map[string]*proto.Sandbox{"read": p.files(readAll), "disabled": {Network: true}} {
			policy, err := confine.Resolve(s, confine.Context{})
			if err != nil {
				t.Fatal(err)
			}
			policy.Proxy(false)
			env := map[string]string{"PATH": "/usr/bin:/bin", "OUTER": portOf(outer.Addr())}
			var inner net.Listener
			out, _, _ := p.start(nil, process.Spec{Argv: []string{"/bin/sh", "-c", script}, Cwd: p.dir, Env: env, Confine: policy, Listen: func() error {
				// On this very thread, as listeners are where they were opened.
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 5)); err != nil {
					return err
				}
				f := os.NewFile(uintptr(fd), "")
				defer f.Close()
				if inner, err = net.FileListener(f); err != nil {
					return err
				}
				env["PORT"] = portOf(inner.Addr())
				go func() {
					for {
						c, err := inner.Accept()
						if err != nil {
							return
						}
						_, _ = c.Write([]byte("hello"))
						_ = c.Close()
					}
				}()
				return nil
			}})
			_ = inner.Close()
			want := "proxy hello\nown ok\nout Network is unreachable\nouter Connection refused\nunix Operation not permitted\nnetlink Operation not permitted\nraw Operation not permitted\npair ok\n2\n"
			if name == "disabled" {
				want += "written\n"
			}
			if out != want {
				t.Errorf("%s: %s, want %s", name, out, want)
			}
		}
	})
}

func portOf(a net.Addr) string { return strconv.Itoa(a.(*net.TCPAddr).Port) }
