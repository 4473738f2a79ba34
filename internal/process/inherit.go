package process

import (
	"math"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// shedInherited keeps from commands what the server itself was given by whoever
// started it: open descriptors, and signals that are ignored, as below nohup.
func shedInherited() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // ours are marked already
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) {
			// Caught and dropped is ignored for us, but not for what we execute.
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

var shedInheritedOnce = sync.OnceFunc(shedInherited)
