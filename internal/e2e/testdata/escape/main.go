// Command escape tries to get out of a sandbox, in one of the ways that it knows,
// and prints what came of it: one line each, "out: …" if something was reached, or
// why not.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// ways are the tries, by name. Each gets the arguments behind it.
var ways = map[string]func(args []string) (string, error){
	"tcp": tcp, "marked": marked, "routed": routed, "udp": udp, "send": send,
	"families": families, "vsock": vsock, "uring": uring, "tun": tun,
	"icmp": icmp, "forge": forge, "forge6": forge6, "frame": frame, "out": frameOut,
	"route": addRoute, "address": addAddress, "link": addLink, "flush": flushRules, "queue": takeQueue, "conntrack": flushConnections, "seize": seize,
	"newnet": newNamespaces, "setns": enterInit, "sysctl": writeSysctl, "unix": connectUnix, "abstract": listAbstract,
	"query": query, "hello": sayHello, "raw": sayRaw, "https": request, "get": get,
	"flood": floodConnects, "syns": floodSYN, "queries": floodQueries, "idle": idle, "datagrams": floodDatagrams,
}

// Several ways are apart by "+"; with "at-once" before them none waits for another.
func main() {
	args := os.Args[1:]
	atOnce := len(args) > 0 && args[0] == "at-once"
	if atOnce {
		args = args[1:]
	}
	var all sync.WaitGroup
	var came []*string
	for line := range strings.SplitSeq(strings.Join(args, "\x00"), "\x00+\x00") {
		text := new(string)
		came = append(came, text)
		if atOnce {
			all.Go(func() { *text = try(strings.Split(line, "\x00")) })
		} else {
			fmt.Println(try(strings.Split(line, "\x00")))
		}
	}
	all.Wait()
	for _, text := range came {
		if atOnce {
			fmt.Println(*text)
		}
	}
}

// try is the line about one way.
func try(args []string) string {
	way := ways[args[0]]
	if way == nil {
		return "there is no way " + args[0]
	}
	got, err := way(args[1:])
	name := strings.Join(args, " ")
	name = name[:min(len(name), 100)]
	if err != nil {
		return fmt.Sprintf("%q: %s", name, short(err))
	}
	return fmt.Sprintf("%q: out: %s", name, got)
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
