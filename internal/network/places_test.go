package network

import (
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// An environment that takes all that it gets leaves as much to the others, each time.
func TestPlacesOfAll(t *testing.T) {
	p := &places{most: 64}
	var all []*budget
	for _, want := range []int{32, 16, 8, 4, 2, 1, 1, 0} {
		b := newBudget(rules.Limits{}, 0)
		b.places = p
		if got := times(b.enter); got != want {
			t.Errorf("environment %d has %d, want %d", len(all)+1, got, want)
		}
		all = append(all, b)
	}
	for all[0].connections() > 0 {
		all[0].leave()
	}
	if got := times(all[7].enter); got != 16 {
		t.Errorf("the last has %d when the first has none", got)
	}
}
