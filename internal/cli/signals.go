package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal is ctx until somebody tells the program to end, or its terminal goes.
// With nohup the latter does not count.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, signals...)
}
