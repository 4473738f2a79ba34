// Command faultprobe keeps several connections to an environment busy while
// something goes wrong on the way, and tells what was lost. scripts/faults uses it.
//
// Each connection runs commands and moves files, compares what comes back, and
// comes back itself with its session when it is lost or an answer does not come.
// The process that each session started first has to be there to the end. SIGUSR1
// says that nothing goes wrong any more: from then on each connection has to do a
// whole round without losing anything.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	url := flag.String("url", "", "the environment's `ws://` URL")
	streams := flag.Int("streams", 3, "connections at once")
	dir := flag.String("dir", os.TempDir(), "folder of the environment for files")
	patience := flag.Duration("patience", 3*time.Second, "how long an answer may take")
	within := flag.Duration("within", time.Minute, "how long the recovery may take")
	flag.Parse()
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	ended := make(chan struct{})
	var at time.Time // when the fault ended; read after ended is closed
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-usr1
		at = time.Now()
		close(ended)
		time.AfterFunc(*within, cancel)
	}()
	workers := make([]*worker, *streams)
	var all sync.WaitGroup
	for i := range workers {
		workers[i] = &worker{url: *url, dir: *dir, mark: fmt.Sprintf("%d-%d", os.Getpid(), i), patience: *patience}
		all.Go(func() { workers[i].run(ctx, ended) })
	}
	all.Wait()
	var sum counts
	var last time.Time
	recovered := true
	for _, w := range workers {
		sum.add(w.counts)
		recovered = recovered && !w.clean.IsZero()
		if w.clean.After(last) {
			last = w.clean
		}
	}
	fmt.Printf("rounds=%d lost=%d refused=%d sessions_lost=%d wrong=%d", sum.rounds, sum.lost, sum.refused, sum.sessions, sum.wrong)
	if recovered {
		fmt.Printf(" recovered=%.1f", last.Sub(at).Seconds())
	}
	fmt.Println()
	for _, w := range workers {
		for _, text := range w.notes {
			fmt.Fprintf(os.Stderr, "%s: %s\n", w.mark, text)
		}
	}
	if !recovered || sum.sessions > 0 || sum.wrong > 0 {
		os.Exit(1)
	}
}

// counts are what happened to a connection.
type counts struct {
	rounds   int // that went well
	lost     int // times that the connection was lost, or an answer did not come
	refused  int // tries to come back that failed
	sessions int // sessions that were gone, with their processes
	wrong    int // answers that were not what they should be
}

func (c *counts) add(o counts) {
	c.rounds += o.rounds
	c.lost += o.lost
	c.refused += o.refused
	c.sessions += o.sessions
	c.wrong += o.wrong
}
