package image

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

func TestCheckSpace(t *testing.T) {
	dir := t.TempDir()
	if err := checkSpace(filepath.Join(dir, "not", "made", "yet"), 1); err != nil {
		t.Errorf("a store without a directory: %v", err)
	}
	if err := checkSpace(dir, 1<<62); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than there is: %v", err)
	}
}
