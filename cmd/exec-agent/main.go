// Command exec-agent is the init process of a sandbox. It serves the exec-server
// protocol on a unix socket to the daemon outside.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/process"
)

func main() {
	fmt.Fprintln(os.Stderr, "exec-agent:", run())
	os.Exit(1)
}

// run serves until that fails.
func run() error {
	socket := flag.String("socket", "", "unix socket to listen on")
	user := flag.String("user", "", "who commands run as: name, uid, name:group or uid:gid")
	cwd := flag.String("cwd", "/", "working directory of the environment")
	workspace := flag.String("workspace", "", "volume to hand to the user while it is new")
	output := flag.Int("output-bytes", 0, "output retained for each process")
	detach := flag.Duration("detach", 0, "how long a session lives without a connection")
	keep := flag.Duration("keep-closed", 0, "how long an ended process stays readable")
	processes := flag.Int("max-processes", 0, "commands that may run at once; 0 is no limit")
	helper := flag.String("helper", "", "program for what the agent does not do itself")
	connections := flag.Int("max-connections", 0, "connections that may be there at once; 0 is no limit")
	ca := flag.String("ca", "", "certificates that the image's programs are to trust")
	bundle := flag.String("ca-bundle", "", "where all certificates that they trust are put, with those")
	flag.Parse()
	if *socket == "" || flag.NArg() > 0 {
		return fmt.Errorf("usage: exec-agent --socket PATH [flags]; see --help")
	}
	// Nothing inside may look into this process, whatever user it runs as.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	unix.Umask(0o022)
	// Init does not end by signals from inside. They are caught and dropped, not
	// ignored, which commands would inherit.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGABRT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGVTALRM, unix.SIGTRAP, unix.SIGSYS, unix.SIGXCPU, unix.SIGXFSZ)
	u, err := agent.LookupUser("", *user)
	if err != nil {
		return err
	}
	if err := trustCA("/", *ca, *bundle); err != nil {
		return err
	}
	if err := handOver(u, *workspace, *cwd); err != nil {
		return err
	}
	s := agent.New(agent.Options{
		Identity: identity(u), Env: environment(u), Cwd: *cwd, Home: u.Home, Shell: u.Shell,
		Detach: *detach, KeepClosed: *keep, OutputBytes: *output, OOMScoreAdj: 500,
		MaxProcesses: *processes, MaxConnections: *connections, Helper: *helper,
		Dir: filepath.Dir(filepath.Dir(*socket)), // beside the socket's, where only mounts are
		// The sandbox of a session ends with it, and a sandbox ends with its init.
		LastSession: func(string) {
			go func() { time.Sleep(100 * time.Millisecond); process.Confiner().Close(); os.Exit(0) }()
		},
	})
	if os.Getpid() == 1 {
		go process.ReapOrphans()
	}
	return s.Listen(*socket)
}

// identity is nil if commands run as the agent's own user, who is not root.
func identity(u agent.User) *process.Identity {
	if os.Getuid() != 0 && u.UID == os.Getuid() && u.GID == os.Getgid() && len(u.Groups) == 0 {
		return nil
	}
	return &process.Identity{UID: u.UID, GID: u.GID, Groups: u.Groups, Guard: os.Getuid() == 0}
}

// environment is what commands inherit: the container's, and what a log-in adds.
func environment(u agent.User) []string {
	env := os.Environ()
	if root, err := agent.LookupUser("", "0"); err == nil && u.UID != 0 {
		// The runtime sets the HOME of the user that init runs as.
		env = slices.DeleteFunc(env, func(pair string) bool { return pair == "HOME="+root.Home })
	}
	add := func(name, value string) {
		for _, pair := range env {
			if strings.HasPrefix(pair, name+"=") {
				return
			}
		}
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	add("HOME", u.Home)
	add("USER", u.Name)
	add("LOGNAME", u.Name)
	add("SHELL", u.Shell)
	return env
}

// handOver gives a new, empty volume to the user, and makes the working
// directory if the image lacks it.
func handOver(u agent.User, workspace, cwd string) error {
	if workspace != "" {
		var st unix.Stat_t
		if err := unix.Stat(workspace, &st); err != nil {
			return fmt.Errorf("workspace %s: %w", workspace, err)
		}
		if entries, err := os.ReadDir(workspace); err == nil && len(entries) == 0 && st.Uid == 0 {
			if err := os.Chown(workspace, u.UID, u.GID); err != nil {
				return fmt.Errorf("workspace: %w", err)
			}
		}
	}
	if st, err := os.Stat(cwd); err == nil && !st.IsDir() {
		return fmt.Errorf("working directory: %s is not a directory", cwd)
	} else if os.IsNotExist(err) {
		if err := os.MkdirAll(cwd, 0o755); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
		if err := os.Chown(cwd, u.UID, u.GID); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
	}
	return nil
}
