package remote

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// Over direct, a socket ends with its one connection.
func TestAHarnessThatLeavesIsNoTrouble(t *testing.T) {
	inWorld(t, Direct, func(w *world, _ *Options) {
		w.socket = func(n int, ws *websocket.Conn) {
			switch n {
			case 1:
				_ = ws.Close(websocket.StatusNormalClosure, "bye")
			case 2:
				_ = ws.Close(websocket.StatusGoingAway, "drained")
			default:
				<-w.over
			}
		}
	}, func(w *world) {
		synctest.Wait()
		if s := w.link.Status(); s.State != Disconnected || s.LastError != "" {
			t.Errorf("the status is %+v", s)
		}
		time.Sleep(time.Minute)
		if s := w.link.Status(); s.State != Connected || s.Reconnects != 2 || !strings.Contains(s.LastError, "drained") {
			t.Errorf("the status is %+v", s)
		}
		if log := w.log.String(); strings.Count(log, "harness has closed") != 1 || strings.Count(log, `"warn"`) != 1 || !strings.Contains(log, `"retry_in":"`) {
			t.Errorf("the log is\n%s", log)
		}
	})
}
