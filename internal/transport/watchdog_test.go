package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

func TestVanished(t *testing.T) {
	const s = 1000
	for name, tt := range map[string]struct {
		info unix.TCPInfo
		want bool
	}{
		"nothing to acknowledge":       {unix.TCPInfo{Last_ack_recv: 900 * s, Last_data_recv: 900 * s}, false},
		"a ping unanswered for long":   {unix.TCPInfo{Last_ack_recv: 80 * s, Last_data_recv: 90 * s, Unacked: 1, Retransmits: 7}, true},
		"not for long":                 {unix.TCPInfo{Last_ack_recv: 70 * s, Last_data_recv: 90 * s, Unacked: 1, Retransmits: 7}, false},
		"it sends":                     {unix.TCPInfo{Last_ack_recv: 80 * s, Last_data_recv: 1 * s, Unacked: 1, Retransmits: 7}, false},
		"just sent after a long while": {unix.TCPInfo{Last_ack_recv: 80 * s, Last_data_recv: 80 * s, Unacked: 1}, false},
		"does not read, acknowledges":  {unix.TCPInfo{Last_ack_recv: 110 * s, Last_data_recv: 900 * s, Probes: 1}, false},
		"does not even acknowledge":    {unix.TCPInfo{Last_ack_recv: 110 * s, Last_data_recv: 900 * s, Probes: 2}, true},
	} {
		if got := patientWatchdog.vanished(&tt.info); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAVanishedPeerIsNoticedWithin90Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		vanished := begun.Add(47 * time.Second)
		patientWatchdog.watch(t.Context(), func() (*unix.TCPInfo, error) {
			silent := uint32(max(0, time.Since(vanished)).Milliseconds())
			lost := uint8(0)
			if silent > 30_000 { // there is a ping every 30 s
				lost = 5
			}
			return &unix.TCPInfo{Last_ack_recv: silent, Last_data_recv: silent, Unacked: uint32(lost), Retransmits: lost}, nil
		})
		if took := time.Since(vanished); took < 60*time.Second || took > 90*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

func TestTheWatchdogEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patientWatchdog.watch(t.Context(), func() (*unix.TCPInfo, error) { return nil, errors.New("closed") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		patientWatchdog.watch(ctx, func() (*unix.TCPInfo, error) { return &unix.TCPInfo{}, nil })
	})
}

// The kernel says what the watchdog wants to know: a network of its own goes down
// under a connection.
func TestTheKernelKnowsThatAPeerHasVanished(t *testing.T) {
	testroot.Need(t)
	done := make(chan struct{})
	go func() { // on a thread that ends with it
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		loopback(t, unix.IFF_UP)
		ours, theirs := tcp(t)
		c := &wireConn{TCPConn: ours, door: &door{}}
		quick := watchdog{every: 20 * time.Millisecond, silence: 300 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// Nobody reads, and nobody vanishes.
		_ = ours.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		for {
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		quick.watch(ctx, c.info)
		if ctx.Err() == nil {
			i, err := c.info()
			t.Errorf("a peer that does not read has vanished: %+v, %v", i, err)
		}
		_ = ours.SetWriteDeadline(time.Time{})
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		for i, err := c.info(); i.Notsent_bytes > 0 || i.Unacked > 0; i, err = c.info() {
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		loopback(t, 0)
		if _, err := c.Write([]byte{0x89, 0}); err != nil {
			t.Error(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), patience)
		defer cancel()
		quick.watch(ctx, c.info)
		if ctx.Err() != nil {
			i, err := c.info()
			t.Errorf("it is not noticed: %+v, %v", i, err)
		}
	}()
	<-done
}

// loopback sets the flags of the thread's own.
func loopback(t *testing.T, flags uint16) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		t.Error(err)
		return
	}
	ifr.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		t.Error(err)
	}
}

// The end of a connection is noticed behind data that nobody reads.
func TestTheEndIsNoticedBehindUnreadMessages(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"close":      (*net.TCPConn).Close,
		"half close": (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			watching, got := make(chan struct{}), make(chan bool, 1)
			l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
				if _, err := c.ReadFrame(); err != nil {
					t.Error(err)
				}
				w := c.(proto.Watcher)
				stop := make(chan struct{})
				time.AfterFunc(20*time.Millisecond, func() { close(stop) })
				if w.AwaitEnd(stop) {
					t.Error("it ends before it does")
				}
				if f, err := c.ReadFrame(); err != nil || string(f.Body()) != "one" { // reading goes on
					t.Error(err)
				}
				close(watching)
				got <- w.AwaitEnd(nil)
			})
			s := dialWS(t, l, "/")
			s.send(text, "hello")
			s.send(text, "one")
			s.send(text, "two")
			<-watching
			s.send(text, "three")
			if err := end(s.Conn.(*net.TCPConn)); err != nil {
				t.Error(err)
			}
			select {
			case gone := <-got:
				if !gone {
					t.Error("it is not noticed")
				}
			case <-time.After(patience):
				t.Error("it is not noticed")
			}
		})
	}
}

// Closing a connection ends the wait for its end.
func TestCloseEndsTheWatchOfAConnection(t *testing.T) {
	got := make(chan bool, 1)
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		time.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
		got <- c.(proto.Watcher).AwaitEnd(nil)
	})
	dialWS(t, l, "/").dropped()
	if !<-got {
		t.Error("it goes on")
	}
}
