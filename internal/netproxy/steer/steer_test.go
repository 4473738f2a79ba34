package steer

import (
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/testroot"
)

// inside runs f in a namespace of its own, with its loopback up.
func inside(t *testing.T, f func()) {
	t.Helper()
	testroot.Need(t)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and the thread ends with it
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			lo, err := unix.NewIfreq("lo")
			if err != nil {
				return err
			}
			lo.SetUint16(unix.IFF_UP)
			if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
				return err
			}
			f()
			return nil
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWhereConnectionsLead(t *testing.T) {
	inside(t, func() {
		if err := Prepare(); err != nil {
			t.Error(err)
			return
		}
		stream, err1 := net.Listen("tcp", ":0")
		names, err2 := net.Listen("tcp", ":0")
		own, err3 := net.Listen("tcp", "127.0.0.1:0")
		dns4, err4 := net.ListenPacket("udp", netip.AddrPortFrom(Gateway4, 0).String())
		dns6, err5 := net.ListenPacket("udp", netip.AddrPortFrom(Gateway6, 0).String())
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				t.Error(err)
				return
			}
		}
		port := func(a net.Addr) uint16 { return netip.MustParseAddrPort(a.String()).Port() }
		if err := Steer(Ports{port(stream.Addr()), port(names.Addr()), port(dns4.LocalAddr()), port(dns6.LocalAddr())}); err != nil {
			t.Error(err)
			return
		}
		for word, l := range map[string]net.Listener{"stream": stream, "names": names, "own": own} {
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Write([]byte(word))
					_ = c.Close()
				}
			}()
		}
		for word, l := range map[string]net.PacketConn{"dns4": dns4, "dns6": dns6} {
			defer l.Close()
			go func() {
				b := make([]byte, 9)
				for {
					_, from, err := l.ReadFrom(b)
					if err != nil {
						return
					}
					_, _ = l.WriteTo([]byte(word), from)
				}
			}()
		}
		for _, c := range []struct{ network, to, want string }{
			{"tcp", "1.2.3.4:80", "stream"},
			{"tcp", "[2606:4700::1]:443", "stream"},
			{"tcp", "1.2.3.4:53", "names"},
			{"tcp", "127.0.0.1:53", "names"},
			{"tcp", "[::1]:53", "names"},
			{"tcp", own.Addr().String(), "own"},
			{"tcp", "127.0.0.1:1", "connection refused"},
			{"udp", "1.2.3.4:53", "dns4"},
			{"udp", "127.0.0.53:53", "dns4"},
			{"udp", "203.0.113.1:53", "dns4"},
			{"udp", "[2606:4700::1]:53", "dns6"},
			{"udp", "[::1]:53", "dns6"},
			{"udp", "1.2.3.4:443", "connection refused"},
			{"udp", "[2606:4700::1]:443", "connection refused"},
		} {
			conn, err := net.Dial(c.network, c.to)
			got := ""
			if err == nil {
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				if c.network == "udp" {
					_, err = conn.Write([]byte("x"))
				}
				b := make([]byte, 9)
				if err == nil {
					var n int
					n, err = conn.Read(b)
					got = string(b[:n])
				}
				_ = conn.Close()
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, c.want) {
				t.Errorf("%s to %s: %s, want %s", c.network, c.to, got, c.want)
			}
		}
	})
}
