// Command probe tries one way out of a sandbox, by sockets alone: it looks at no
// variable of a proxy and at no resolver's configuration. It prints "ok" and what it
// was told, or what became of it in a word.
//
//	probe tcp ADDR:PORT                 connects
//	probe banner ADDR:PORT              connects, and reads what the server says first
//	probe http ADDR:PORT HOST...        requests for the hosts, over one connection
//	probe tls ADDR:PORT SNI [HOST]      a request over TLS; SNI may be "-" for none
//	probe ech ADDR:PORT OUTER INNER     a request with an encrypted ClientHello
//	probe udp ADDR:PORT                 a datagram, and its answer
//	probe ping ADDR                     an ICMP echo over a raw socket
//	probe raw ADDR:PORT                 a SYN over a raw socket
//	probe frame                         an Ethernet frame, on every interface
//	probe name NAME SERVER:PORT         asks a name server for its addresses
//	probe names N NAME SERVER:PORT      asks for N names below one
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// patience is how long an answer may take before there is none; PATIENCE is another.
var patience = 20 * time.Second

func main() {
	if d, err := time.ParseDuration(os.Getenv("PATIENCE")); err == nil {
		patience = d
	}
	told, err := try(append(os.Args[1:], "", "", "", ""))
	if err != nil {
		fmt.Println(word(err))
		os.Exit(1)
	}
	fmt.Println(strings.TrimSpace("ok " + told))
}

// try does what the arguments say; those that are left out are "".
func try(args []string) (string, error) {
	switch to := args[1]; args[0] {
	case "tcp":
		return "", connect(to, func(net.Conn) error { return nil })
	case "banner":
		return banner(to)
	case "http":
		return requests(to, os.Args[3:])
	case "tls":
		return overTLS(to, args[2], args[3])
	case "ech":
		return hidden(to, args[2], args[3])
	case "udp":
		return datagram(to)
	case "ping":
		return ping(to)
	case "raw":
		return rawSYN(to)
	case "frame":
		return frame()
	case "name":
		return lookUp(to, args[2])
	case "names":
		return lookUps(to, args[2], args[3])
	}
	return "", fmt.Errorf("%q is not known", args[0])
}

// connect runs f with a connection.
func connect(to string, f func(net.Conn) error) error {
	c, err := net.DialTimeout("tcp", to, patience)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	return f(c)
}

// word says what an error is.
func word(err error) string {
	for _, w := range []struct {
		is   error
		word string
	}{
		{syscall.ECONNREFUSED, "refused"},
		{syscall.ECONNRESET, "reset"},
		{syscall.EPIPE, "reset"},
		{io.EOF, "closed"},
		{io.ErrUnexpectedEOF, "closed"},
		{syscall.EPERM, "not permitted"},
		{syscall.EACCES, "not permitted"},
		{syscall.ENETUNREACH, "unreachable"},
		{syscall.EHOSTUNREACH, "unreachable"},
	} {
		if errors.Is(err, w.is) {
			return w.word
		}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "no answer"
	}
	return err.Error()
}
