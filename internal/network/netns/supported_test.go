package netns

import (
	"testing"

	"github.com/exec-server/exec-server/internal/testroot"
)

func TestSupported(t *testing.T) {
	testroot.Need(t)
	if err := Supported(); err != nil {
		t.Fatal(err)
	}
}
