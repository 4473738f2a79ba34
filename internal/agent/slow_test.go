package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestNotificationsForASlowHarnessAreBounded(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		h := silent(t, s, proto.Hello{})
		sess := h.session()
		const n = 200
		sent := make(chan int, n)
		go func() {
			for i := range n {
				sess.notify(note(i, strings.Repeat("x", 8<<10)))
				sent <- i
			}
		}()
		synctest.Wait()
		if got := len(sent) * 8 << 10; got > maxUnsent+2*8<<10 {
			t.Errorf("%d bytes were taken", got)
		}
		go h.read()
		for i := range n {
			if got := h.note(); !strings.HasPrefix(got, fmt.Sprintf(`{"method":"n","params":{"i":%d,`, i)) {
				t.Fatalf("notification %d is %.50s", i, got)
			}
		}
	})
}

// A harness that asks and asks and does not read gets the server to stop reading
// instead of piling answers up.
func TestAnswersForASlowHarnessAreBounded(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		inBubble(t, Options{}, func(t *testing.T, s *Server) {
			h := silent(t, s, proto.Hello{Concurrency: concurrency})
			sess := h.session()
			go sess.notify(note(0, "")) // somebody else is writing
			synctest.Wait()
			const n = 400
			sent := make(chan int, n)
			go func() {
				for i := range n {
					h.send(`{"id":%d,"method":"test/big"}`, i)
					sent <- i
				}
			}()
			synctest.Wait()
			if got := len(sent); got > maxUnread/(64<<10)+maxBacklog+concurrency+2 {
				t.Errorf("%d answers of 64 KiB are waiting", got)
			}
			go h.read()
			for range n {
				h.answer()
			}
		})
	}
}

func TestAHarnessThatDoesNotReadCanStillLeave(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		h := silent(t, s, proto.Hello{})
		sess := h.session()
		done := make(chan struct{})
		go func() {
			for i := range 200 {
				sess.notify(note(i, strings.Repeat("x", 8<<10)))
			}
			close(done)
		}()
		go func() {
			for range 200 {
				_ = h.conn.WriteFrames(proto.FrameOf([]byte(`{"id":1,"method":"test/big"}`)))
			}
		}()
		synctest.Wait()
		h.leave()
		<-done // what notified goes on
		connect(t, s, proto.Hello{}).initialize(h.id)
	})
}

// One that does not read holds up its own commands and nobody else.
func TestASlowHarnessHoldsUpOnlyItsOwnCommands(t *testing.T) {
	s := newServer(t, Options{})
	slow, quick := silent(t, s, proto.Hello{}), ready(t, s, proto.Hello{})
	marker := filepath.Join(t.TempDir(), "marker")
	slow.send(`{"id":1,"method":"process/start","params":%s}`, slow.startParams("p", "head -c 5000000 /dev/zero; echo >"+marker, ""))
	if f, err := slow.conn.ReadFrame(); err != nil || !strings.Contains(string(f.Body()), `"result"`) {
		t.Fatal(err)
	}
	for i := range 20 {
		id := fmt.Sprint(i)
		quick.start(id, "head -c 100000 /dev/zero; echo "+id+" >&2; exit 3", "")
		if out, code := quick.untilClosed(id); code != 3 || len(out) != 100000+len(id)+1 {
			t.Fatalf("exit code %d, %d bytes", code, len(out))
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Fatal("the command of the slow harness has ended")
	}
	p, _ := slow.session().find("p")
	slow.leave()
	for !p.Read(1<<60, 0, false, patience, nil).Closed { // its output is read now
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
}
