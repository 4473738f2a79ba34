package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/netproxy"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// localProxy is the real proxy in place of a process of its own.
type localProxy struct {
	*proto.StreamConn
	ended *atomic.Int32
	done  chan struct{}
}

func (l *localProxy) hangUp() { _ = l.Close() }

func (l *localProxy) end() {
	l.hangUp()
	<-l.done
	l.ended.Add(1)
}

// proxies has a server run its proxies inside the test, and counts them.
type proxies struct{ begun, ended atomic.Int32 }

func (p *proxies) serve(t *testing.T, s *Server) {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(func() { s.Close(); running.Wait() })
	s.startProxy = func(files []int) (proxyLink, error) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		inherited := make([]*os.File, len(files))
		for i, fd := range files {
			dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				return nil, err
			}
			inherited[i] = os.NewFile(uintptr(dup), fmt.Sprint("socket ", i))
		}
		p.begun.Add(1)
		l := &localProxy{StreamConn: proto.NewStreamConn(&socket{fd: pair[0]}, policy.MaxMessage), ended: &p.ended, done: make(chan struct{})}
		running.Go(func() {
			defer close(l.done)
			theirs := proto.NewStreamConn(&socket{fd: pair[1]}, policy.MaxMessage)
			if err := netproxy.Run(theirs, func(n int) *os.File { return inherited[n] }); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("the proxy: %v", err)
			}
			_ = theirs.Close()
		})
		return l, nil
	}
}
