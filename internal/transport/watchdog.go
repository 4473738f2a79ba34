package transport

import (
	"context"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// pingEvery is how often the server pings, whatever comes back.
const pingEvery = 30 * time.Second

// keepalive pings until the connection ends. Pongs are not looked at.
func keepalive(ctx context.Context, wire io.Writer) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if _, err := wire.Write([]byte{0x89, 0}); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// watchdog finds out that a peer has vanished without a word, with its machine or
// its network. It asks the kernel, and not for pongs: a peer need not answer pings,
// nor read, as long as its kernel acknowledges. For the same reason it does not
// use TCP_USER_TIMEOUT, which also ends a connection whose peer is there and does
// not read. With a ping every 30 s a vanished peer is noticed within 90 s.
type watchdog struct {
	every   time.Duration // between two looks
	silence time.Duration // without any sign of life
}

var patientWatchdog = watchdog{every: 15 * time.Second, silence: 75 * time.Second}

// watch returns when the peer has vanished, or the context has ended.
func (w watchdog) watch(ctx context.Context, info func() (*unix.TCPInfo, error)) {
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if i, err := info(); err != nil || w.vanished(i) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// vanished judges by what has been sent in vain. A peer with a closed window is
// probed, at last once in two minutes, and resets the count whenever it answers.
func (w watchdog) vanished(i *unix.TCPInfo) bool {
	silent := time.Duration(min(i.Last_ack_recv, i.Last_data_recv)) * time.Millisecond
	return silent >= w.silence && (i.Unacked > 0 && i.Retransmits >= 3 || i.Probes >= 2)
}
