//go:build race

package transport

// raceEnabled makes tests skip what moves hundreds of megabytes, which takes the
// race detector many seconds and shows it nothing.
const raceEnabled = true
