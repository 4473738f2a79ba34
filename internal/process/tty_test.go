package process

import (
	"os"
	"strings"
	"testing"
)

func onTTY(script string) Spec {
	spec := sh(script)
	spec.TTY, spec.Home = true, "/"
	return spec
}

func TestTerminalOfACommand(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"size", "stty size", "24 80\r\n"},
		{"echo and line ends", "stty -a | tr ' ;' '\\n\\n' | grep -E '^(-?)(echo|onlcr|icanon|isig)$' | sort | tr '\\n' ' '", "echo icanon isig onlcr "},
		{"all three are it", "for i in 0 1 2; do test -t $i || echo $i is not; done", ""},
		{"it controls", "echo through >/dev/tty", "through\r\n"},
		{"no TERM", "echo ${TERM-unset}", "unset\r\n"},
		{"stderr", "echo err >&2", "err\r\n"},
	} {
		if got := prints(t, onTTY(test.script)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestShellIsAddedOnTerminalsOnly(t *testing.T) {
	for _, test := range []struct {
		tty  bool
		env  string
		want string
	}{{true, "", "/bin/theirs"}, {true, "/bin/mine", "/bin/mine"}, {false, "", "unset"}} {
		spec := sh("printf %s ${SHELL-unset}")
		spec.TTY, spec.Shell = test.tty, "/bin/theirs"
		if test.env != "" {
			spec.Env["SHELL"] = test.env
		}
		if got := prints(t, spec); got != test.want {
			t.Errorf("tty %v, SHELL %q: it is %q", test.tty, test.env, got)
		}
	}
}

func TestAnUnusableDirectoryIsHomeOnTerminals(t *testing.T) {
	home := t.TempDir()
	for _, test := range []struct{ cwd, home, want string }{
		{"/", home, "/"},
		{"/no/such", home, home},
		{"/etc/passwd", home, home},
		{"/no/such", "/neither", "/"},
		{"/no/such", "", "/"},
	} {
		spec := onTTY("pwd")
		spec.Cwd, spec.Home = test.cwd, test.home
		if got := strings.TrimSpace(prints(t, spec)); got != test.want {
			t.Errorf("%s with home %s: it starts in %s", test.cwd, test.home, got)
		}
	}
}

func TestATerminalTakesInputAndAnEnd(t *testing.T) {
	c := start(t, onTTY("cat; echo end"))
	c.write(t, "1", []byte("hello\n"))
	c.awaitOutput(t, "hello\r\nhello\r\n") // echoed, and printed
	c.write(t, "2", []byte{4})
	events, code := c.wait(t)
	if got := string(output(events, "pty")); got != "hello\r\nhello\r\nend\r\n" || code != 0 {
		t.Errorf("exit code %d, output %q", code, got)
	}
}

func TestAnInterruptTypedOnATerminalIsASignal(t *testing.T) {
	c := start(t, onTTY("trap 'exit 9' INT; echo up; while :; do sleep 0.05; done"))
	c.awaitOutput(t, "up")
	n := 0
	c.repeat(func() {
		n++
		_, _ = c.p.Write(itoa(n), []byte{3}, nil)
	})
	if _, code := c.wait(t); code != 9 {
		t.Errorf("exit code %d", code)
	}
}

func TestResize(t *testing.T) {
	c := start(t, onTTY(`while [ "$(stty size)" = "24 80" ]; do sleep 0.02; done; stty size`))
	c.p.Resize(40, 132)
	events, _ := c.wait(t)
	if got := string(output(events, "")); got != "40 132\r\n" {
		t.Errorf("output %q", got)
	}
	c.p.Resize(1, 1) // after the end it does nothing
	plain := start(t, sh("exit 0"))
	plain.p.Resize(1, 1) // and without a terminal
	plain.wait(t)
}

// A child in the background loses the terminal with the command, as with every
// terminal that hangs up.
func TestATerminalIsClosedWithItsCommand(t *testing.T) {
	c := start(t, onTTY("trap '' HUP; { sleep 1000; } & echo up; exit 2"))
	pid := c.p.PID()
	c.awaitExit(t)
	c.p.Abandon()
	if _, code := c.wait(t); code != 2 {
		t.Errorf("exit code %d", code)
	}
	kill(-pid, 9)
}

// Without a terminal there must be none to ask for a password on.
func TestWithoutATerminalThereIsNone(t *testing.T) {
	if _, err := os.Stat("/dev/tty"); err != nil {
		t.Skip("no /dev/tty here")
	}
	events, code := start(t, sh("read x </dev/tty")).wait(t)
	if text := string(output(events, "stderr")); code == 0 || !strings.Contains(text, "No such device or address") {
		t.Errorf("exit code %d, %q", code, text)
	}
}
