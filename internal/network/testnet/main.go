package testnet

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
)

// mark tells a process of Main's from others.
const mark = "EXEC_SERVER_TESTNET"

func isolated() bool { return os.Getenv(mark) != "" }

// Main is for a TestMain: it runs the tests in another process of this program,
// whose own network namespace is a new one, and ends with its status. Somebody else
// than root gets his tests in this process, to be skipped.
func Main(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	if isolated() {
		host, err := thisSpace() // sets its loopback up
		if err != nil {
			fmt.Fprintln(os.Stderr, "testnet:", err)
			os.Exit(1)
		}
		_ = host.Close()
		os.Exit(m.Run())
	}
	runtime.LockOSThread()        // the child's Pdeathsig is about this thread
	signal.Ignore(syscall.SIGINT) // the child gets it too
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "testnet:", err)
		os.Exit(1)
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 { // by a signal
		code = 1
	}
	os.Exit(code)
}
