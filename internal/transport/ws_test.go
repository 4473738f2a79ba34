package transport

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestMessagesAreEchoedAsText(t *testing.T) {
	s := dialWS(t, listen(t, echo), "/")
	large := strings.Repeat("large ", 50000)
	for _, payload := range []string{"", "{}", strings.Repeat("x", 125), strings.Repeat("x", 126), strings.Repeat("x", 65535), strings.Repeat("x", 65536), "é😀", large} {
		s.send(text, payload)
		s.expect(text, payload)
		s.send(binaryFrame, payload)
		s.expect(text, payload)
	}
	s.send(binaryFrame, "\xff\xfe") // for the parser to complain about
	s.expect(text, "\xff\xfe")
}

func TestFragmentsAreJoined(t *testing.T) {
	s := dialWS(t, listen(t, echo), "/")
	s.send(text&more, "{\"a\":")
	s.send(0, "")
	s.send(0, "\"\xc3") // a character may be split
	s.send(ping, "between")
	s.expect(pong, "between")
	s.send(continued, "\xa9\"}")
	s.expect(text, `{"a":"é"}`)
	s.send(binaryFrame&more, "x")
	s.send(continued, "")
	s.expect(text, "x")
}

func TestFramesAreMasked(t *testing.T) {
	s := dialWS(t, listen(t, echo), "/")
	masked := []byte{0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58} // of RFC 6455
	s.write(masked)
	s.expect(text, "Hello")
}

// Many messages that are written together arrive as frames of their own, each
// of them whole, whatever their sizes.
func TestEachFrameIsOneMessage(t *testing.T) {
	sizes := []int{0, 1, 125, 126, 40000, 3, copyBelow - 1, copyBelow, copyBelow + 1, 7, 65535, 65536, 200000, 0, 2 << 20, 5}
	var frames []byte
	var want []string
	for i, n := range sizes {
		payload := strings.Repeat(string(rune('a'+i)), n)
		want = append(want, payload)
		frames = append(frames, proto.FrameOf([]byte(payload))...)
	}
	wrote := make(chan error, 10)
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		before := bytes.Clone(frames)
		for range 3 {
			wrote <- c.WriteFrames(frames)
		}
		if !bytes.Equal(before, frames) {
			t.Error("writing changes the frames")
		}
		wrote <- c.WriteFrames(frames[:len(frames)-1])
		_, _ = c.ReadFrame()
	})
	s := dialWS(t, l, "/")
	for range 3 {
		for _, payload := range want {
			s.expect(text, payload)
		}
		if err := <-wrote; err != nil {
			t.Error(err)
		}
	}
	if err := <-wrote; err == nil {
		t.Error("half a frame is no error")
	}
}

func TestPingsAreAnswered(t *testing.T) {
	s := dialWS(t, listen(t, echo), "/")
	for _, payload := range []string{"", "payload", strings.Repeat("x", 125)} {
		s.send(ping, payload)
		s.expect(pong, payload)
	}
	s.send(pong, "unasked")
	s.send(text, "still there")
	s.expect(text, "still there")
}

// A message whose end never came must not be taken for a whole one.
func TestUnfinishedMessageIsNotDelivered(t *testing.T) {
	got := make(chan string, 1)
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		f, err := c.ReadFrame()
		if err == nil {
			got <- "message " + string(f.Body())
		} else {
			got <- "end"
		}
	})
	s := dialWS(t, l, "/")
	s.write([]byte{0x01, 0x82, 0, 0, 0, 0, '{', '}'}) // text, not final, masked with zeros
	_ = s.Conn.(*net.TCPConn).CloseWrite()
	if what := <-got; what != "end" {
		t.Errorf("the handler got a %s", what)
	}
}
