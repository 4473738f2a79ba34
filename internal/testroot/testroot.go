// Package testroot is for tests that need root: they must not be skipped in
// silence where all tests have to run.
package testroot

import (
	"os"
	"testing"
)

// Need skips a test that is not run by root. With CI=true in the environment it
// fails it instead.
func Need(t testing.TB) {
	t.Helper()
	switch {
	case os.Geteuid() == 0:
	case os.Getenv("CI") == "true":
		t.Fatal("this test needs root")
	default:
		t.Skip("this test needs root")
	}
}
