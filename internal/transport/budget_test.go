package transport

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestSharesAreBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := semaphore.NewWeighted(10)
		a, b := &share{of: all}, &share{of: all}
		ctx := context.Background()
		if err := errors.Join(a.raise(ctx, 4), a.raise(ctx, 8), b.raise(ctx, 2)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := b.raise(ctx, 3); !errors.Is(err, errBudget) || time.Since(begun) != largePatience {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.AfterFunc(time.Second, a.release)
		begun = time.Now()
		if err := b.raise(ctx, 10); err != nil || time.Since(begun) != time.Second { // it waits for room
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		b.release()
		b.release()
		if !all.TryAcquire(10) {
			t.Error("something is held still")
		}
	})
}

// A connection that is closed does not wait for its share.
func TestAClosedConnectionWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := &share{of: semaphore.NewWeighted(1)}
		begun := time.Now()
		if err := s.raise(ctx, 2); err == nil || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// What large messages take is given back, whatever becomes of the connection.
func TestLargeMessagesAreGivenBack(t *testing.T) {
	seen := make(chan *wsConn, 10)
	next := make(chan struct{})
	l := listen(t, func(_ context.Context, c proto.Conn, _, _ string) {
		for {
			f, err := c.ReadFrame()
			if err != nil {
				seen <- c.(*wsConn)
				return
			}
			if len(f.Body()) > smallMessage {
				seen <- c.(*wsConn)
				<-next
			}
		}
	})
	large := strings.Repeat("x", 3<<20)
	s := dialWS(t, l, "/")
	s.send(text, "hello")
	s.send(text, large)
	c := <-seen
	if held := c.share.held.Load(); held < 3<<20 || held > 8<<20 {
		t.Errorf("it holds %d bytes", held)
	}
	s.send(text, "small")
	next <- struct{}{}
	// The next message has been asked for when the buffer is small again.
	for end := time.Now().Add(patience); c.share.held.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it holds on")
		}
	}
	s.send(text, large)
	<-seen
	next <- struct{}{}
	s.write(frame(text, []byte(large))[:2<<20]) // and no more
	_ = s.Close()
	if c = <-seen; c.share.held.Load() != 0 {
		t.Error("an unfinished message is held still")
	}
}
