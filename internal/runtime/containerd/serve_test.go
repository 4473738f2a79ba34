package containerd

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// unixPair is a connection to an agent, and the agent's end.
func unixPair(t *testing.T) (ours, agent *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// talker is a peer that has always more to say, until it ends.
type talker struct {
	proto.Conn
	frame proto.Frame
	ended chan struct{}
	asked chan struct{} // closed when it is watched
}

func (p *talker) ReadFrame() (proto.Frame, error) { return p.frame, nil }

func (p *talker) AwaitEnd(stop <-chan struct{}) bool {
	close(p.asked)
	p.asked = make(chan struct{})
	select {
	case <-p.ended:
		return true
	case <-stop:
		return false
	}
}

// The end of a peer is noticed while the agent reads nothing, and the agent is
// told at once.
func TestThePeersEndIsNoticedWhileTheAgentDoesNotRead(t *testing.T) {
	ours, agent := unixPair(t)
	p := &talker{frame: proto.FrameOf(make([]byte, 64<<10)), ended: make(chan struct{}), asked: make(chan struct{})}
	asked := p.asked
	up := make(chan error, 1)
	go pumpUp(p, ours, up)
	<-asked
	select {
	case err := <-up:
		t.Fatalf("it ends with %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(p.ended)
	if err := <-up; !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v", err)
	}
	_ = agent.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, agent); err != nil { // what is on its way, and the end
		t.Error(err)
	}
}

// An agent that is only slow gets everything, once and in order.
func TestASlowAgentGetsEverything(t *testing.T) {
	ours, agent := unixPair(t)
	frame := proto.NewFrame(1 << 20)
	for i := range 1 << 20 {
		frame = append(frame, byte(i>>8))
	}
	frame.Seal()
	p := &talker{frame: frame, ended: make(chan struct{}), asked: make(chan struct{})}
	asked := p.asked
	up := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pumpUp(p, ours, up)
	}()
	<-asked // it is stuck in the midst of a frame
	got := make([]byte, len(frame))
	for i := range 5 {
		if _, err := io.ReadFull(agent, got); err != nil || string(got) != string(frame) {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	agent.Close()
	<-done
	select {
	case err := <-up:
		t.Errorf("the peer is said to have ended: %v", err)
	default:
	}
}
