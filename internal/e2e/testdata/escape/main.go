// Command escape tries to get out of a sandbox, in one of the ways that it knows,
// and prints what came of it: one line each, "out: …" if something was reached, or
// why not.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ways are the tries, by name. Each gets the arguments behind it.
var ways = map[string]func(args []string) (string, error){
	"tcp": tcp, "marked": marked, "routed": routed, "udp": udp, "send": send,
	"families": families, "vsock": vsock, "uring": uring, "tun": tun,
	"icmp": icmp, "forge": forge, "forge6": forge6, "frame": frame,
	"route": addRoute, "address": addAddress, "link": addLink, "flush": flushRules, "queue": takeQueue, "conntrack": flushConnections, "seize": seize,
	"newnet": newNamespaces, "setns": enterInit, "sysctl": writeSysctl, "unix": connectUnix, "abstract": listAbstract,
	"query": query, "hello": sayHello, "raw": sayRaw, "https": request, "get": get,
	"flood": floodConnects, "syns": floodSYN, "queries": floodQueries, "idle": idle, "datagrams": floodDatagrams,
}

func main() {
	// Several ways are apart by "+".
	for line := range strings.SplitSeq(strings.Join(os.Args[1:], "\x00"), "\x00+\x00") {
		args := strings.Split(line, "\x00")
		way := ways[args[0]]
		if way == nil {
			fmt.Fprintf(os.Stderr, "escape: there is no way %q\n", args[0])
			os.Exit(2)
		}
		got, err := way(args[1:])
		var name string
		if name = strings.Join(args, " "); len(name) > 100 {
			name = name[:100]
		}
		switch {
		case err != nil:
			fmt.Printf("%q: %s\n", name, short(err))
		default:
			fmt.Printf("%q: out: %s\n", name, got)
		}
	}
}

// short is an error without where it was.
func short(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
