// Command agent stands in for the agent in tests: it echoes frames, and does
// what a frame that begins with "!" says.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

var socket = flag.String("socket", "", "")

func main() {
	user := flag.String("user", "", "")
	cwd := flag.String("cwd", "", "")
	workspace := flag.String("workspace", "", "")
	fail := flag.String("fail", "", "message to exit with")
	mute := flag.Bool("mute", false, "do not listen")
	listener := flag.Bool("listener", false, "be an impostor")
	_ = flag.String("detach", "", "")
	_ = flag.String("ca", "", "")
	_ = flag.String("ca-bundle", "", "")
	flag.Parse()
	if *fail != "" {
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintln(os.Stderr, *fail)
		os.Exit(3)
	}
	if *mute {
		fmt.Fprintln(os.Stderr, "not listening")
		time.Sleep(time.Hour)
	}
	l, err := net.Listen("unix", *socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *listener {
		fmt.Println("listening")
	}
	go reap()
	args := fmt.Sprintf("user=%s cwd=%s workspace=%s pid=%d", *user, *cwd, *workspace, os.Getpid())
	for {
		c, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go serve(c, args)
	}
}

// reap is here so that signals of children interrupt nothing else.
func reap() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGCHLD)
	for range signals {
	}
}

func serve(c net.Conn, args string) {
	defer c.Close()
	hello, err := read(c)
	if err != nil || strings.Contains(string(hello), `"farewell":true`) {
		return
	}
	for {
		f, err := read(c)
		if err != nil {
			return
		}
		if string(f) == "!close" {
			return
		}
		if strings.HasPrefix(string(f), "!") {
			f = do(strings.Fields(string(f[1:])), args, string(hello))
		}
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(f)))
		if _, err := c.Write(append(head, f...)); err != nil {
			return
		}
	}
}

func read(c net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	f := make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err := io.ReadFull(c, f)
	return f, err
}

func do(words []string, args, hello string) []byte {
	answer := func(v any, err error) []byte {
		if err != nil {
			return []byte("error: " + err.Error())
		}
		return fmt.Append(nil, v)
	}
	switch words[0] {
	case "args":
		return []byte(args)
	case "hello":
		return []byte(hello)
	case "env":
		return []byte(strings.Join(os.Environ(), "\n"))
	case "read":
		b, err := os.ReadFile(words[1])
		return answer(string(b), err)
	case "write":
		return answer("ok", os.WriteFile(words[1], []byte(words[2]), 0o644))
	case "symlink":
		return answer("ok", os.Symlink(words[1], words[2]))
	case "remove":
		return answer("ok", os.Remove(words[1]))
	case "exec":
		out, err := exec.Command(words[1], words[2:]...).CombinedOutput()
		return answer(string(out), err)
	case "impostor":
		// Another process of the container takes the socket's name.
		os.Remove(*socket)
		cmd := exec.Command("/proc/self/exe", "--socket", *socket, "--listener")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 1))
		}
		return answer("ok", err)
	case "exit":
		os.Exit(7)
	}
	return []byte("what?")
}
