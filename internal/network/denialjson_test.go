package network

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestDenialsInJSONCountRulesFromOne(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, d := range map[string]Denial{
		`{"at":"2026-01-02T03:04:05Z","what":"tcp 1.1.1.1:22","reason":"rule","rule":1}`: {at, "tcp 1.1.1.1:22", rules.ByRule, 0},
		`{"at":"2026-01-02T03:04:05Z","what":"lookup a.test","reason":"mode"}`:           {at, "lookup a.test", rules.ByMode, -1},
	} {
		text, err := json.Marshal(d)
		if err != nil || string(text) != want {
			t.Errorf("%s, %v, and not %s", text, err, want)
		}
		var again Denial
		if err := json.Unmarshal(text, &again); err != nil || again != d {
			t.Errorf("%s is %+v, %v", text, again, err)
		}
	}
}
