package transport

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// Whenever a connection ends, TCP just ends.
func TestConnectionsEndWithoutACloseFrame(t *testing.T) {
	for name, data := range map[string][]byte{
		"close frame":                frame(closing, []byte{3, 232}),
		"close frame with reason":    frame(closing, append([]byte{3, 233}, "bye"...)),
		"empty close frame":          frame(closing, nil),
		"invalid UTF-8":              frame(text, []byte("a\xff")),
		"split character":            frame(text, []byte("\xc3")),
		"surrogate":                  frame(text, []byte("\xed\xa0\x80")),
		"reserved opcode":            frame(0x83, []byte("x")),
		"reserved control opcode":    frame(0x8b, nil),
		"reserved bit":               frame(0xc1, []byte("x")),
		"not masked":                 {0x81, 1, 'x'},
		"long control frame":         frame(ping, make([]byte, 126)),
		"split control frame":        frame(ping&more, nil),
		"continuation of nothing":    frame(continued, []byte("x")),
		"text within a text":         append(frame(text&more, []byte("a")), frame(text, []byte("b"))...),
		"frame of 16 MiB and a byte": {0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 1},
		"absurd length":              {0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
				for {
					if _, err := c.ReadFrame(); err != nil {
						ended <- err
						return
					}
				}
			})
			s := dialWS(t, l, "/")
			s.send(text, "valid")
			s.write(data)
			s.dropped()
			<-ended
		})
	}
}

func TestMessagesHaveALimit(t *testing.T) {
	if raceEnabled {
		t.Skip("too much for the race detector")
	}
	lengths := make(chan int, 10)
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		for {
			f, err := c.ReadFrame()
			if err != nil {
				return
			}
			lengths <- len(f.Body())
		}
	})
	part := frame(0, make([]byte, 16<<20))
	message := func(s *socket, over int) {
		part[0] = text & more
		for range 4 {
			if _, err := s.Write(part); err != nil {
				return
			}
			part[0] = 0
		}
		_, _ = s.Write(frame(continued, make([]byte, over)))
	}
	stranger := dialWS(t, l, "/") // who has not said hello
	_, _ = stranger.Write(frame(text, make([]byte, maxFirst+1)))
	stranger.dropped()
	s := dialWS(t, l, "/")
	s.send(text, "hello")
	<-lengths
	message(s, 0)
	if n := <-lengths; n != proto.MaxRequest {
		t.Errorf("the largest message arrives with %d bytes", n)
	}
	message(s, 1)
	s.dropped()
	s = dialWS(t, l, "/")
	s.send(text, "hello")
	<-lengths
	_, _ = s.Write(frame(text, make([]byte, wsframe.MaxPayload)))
	if n := <-lengths; n != wsframe.MaxPayload {
		t.Errorf("the largest frame arrives with %d bytes", n)
	}
	_, _ = s.Write(frame(text, make([]byte, wsframe.MaxPayload+1)))
	s.dropped()
	other := dialWS(t, l, "/") // nothing has happened to others
	other.send(text, "x")
	<-lengths
}

func TestTrap54SmallFramesAreNotHeldBack(t *testing.T) {
	noDelay := make(chan int, 1)
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		raw, err := c.(*wsConn).wire.SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		_ = raw.Control(func(fd uintptr) {
			n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY)
			if err != nil {
				t.Error(err)
			}
			noDelay <- n
		})
	})
	dialWS(t, l, "/").dropped()
	if n := <-noDelay; n != 1 {
		t.Errorf("TCP_NODELAY is %d", n)
	}
}

// Who pings and does not read for a while is waited for.
func TestPingsOfWhoDoesNotRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for longer than the library does, 5 s")
	}
	const size = 64 << 20
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		go func() { _ = c.WriteFrames(proto.Frame(append(proto.NewFrame(size), make([]byte, size)...)).Seal()) }()
		for {
			if _, err := c.ReadFrame(); err != nil {
				return
			}
		}
	})
	s := dialWS(t, l, "/")
	if _, err := s.r.Peek(1); err != nil { // it is being written
		t.Fatal(err)
	}
	for range 3 {
		s.send(ping, "are you there")
	}
	time.Sleep(6 * time.Second)
	if f, p := s.receive(); f != text || len(p) != size {
		t.Errorf("got frame %#x (%d bytes)", f, len(p))
	}
	s.expect(pong, "are you there")
}
