//go:build race

package remote_test

// raceEnabled makes tests skip what moves many megabytes, which takes the race
// detector many seconds and shows it nothing.
const raceEnabled = true
