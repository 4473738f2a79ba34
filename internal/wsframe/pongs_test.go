package wsframe

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// Who pings is never waited for.
func TestPongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan []byte)
		p := NewPongs(false, func(frame []byte) error { read <- frame; return nil })
		for i := range 100 {
			p.Answer(fmt.Append(nil, i))
		}
		synctest.Wait() // the first is being written, or the last is the first
		var got []string
		for {
			select {
			case f := <-read:
				got = append(got, string(f))
				synctest.Wait()
				continue
			default:
			}
			break
		}
		if len(got) == 0 || len(got) > 2 || got[len(got)-1] != "\x8a\x0299" {
			t.Errorf("it answers %q", got)
		}
		p.Answer(nil)
		if f := <-read; !slices.Equal(f, []byte{0x8a, 0}) {
			t.Errorf("it answers %q", f)
		}
	})
}
