package doctor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// clock wants a year that can be true, and that the wall clock and the monotonic
// one run alike: sessions are timed with one and logs dated with the other.
func clock() Check {
	const name = "clock"
	start := time.Now()
	time.Sleep(20 * time.Millisecond)
	end := time.Now()
	drift := end.Round(0).Sub(start.Round(0)) - end.Sub(start) // Round(0) leaves the wall clock's reading
	year := end.UTC().Year()
	switch {
	case year < 2025 || year > 2100:
		return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("the year is %d; no certificate is valid then", year), Fix: "set the clock, or install an NTP client"}
	case drift.Abs() > 5*time.Millisecond:
		return Check{Name: name, Status: Warn, Detail: fmt.Sprintf("the wall clock was set by %s within %s", drift, end.Sub(start)),
			Fix: "find out what sets the clock in steps"}
	}
	return ok(name, "%s", end.UTC().Format(time.RFC3339))
}

// timeSync asks the kernel whether something keeps the clock right.
func timeSync() Check {
	const name = "time sync"
	var state unix.Timex
	if _, err := unix.Adjtimex(&state); err != nil {
		return Check{Name: name, Status: Warn, Detail: "cannot be asked for: " + err.Error()}
	}
	if state.Status&unix.STA_UNSYNC != 0 {
		return Check{Name: name, Status: Warn, Detail: "the kernel does not know of any", Fix: "apt-get install systemd-timesyncd (in a virtual machine the host may do it)"}
	}
	return ok(name, "the clock is synchronised")
}
