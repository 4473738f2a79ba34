package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Files runs work on a thread that sees files as the policy says, with the
// user's rights and none beyond, and waits for it. The error, if it is not
// work's own, is as of Start.
func (c *Confiner) Files(job Job, work func() error) error {
	begun := false
	once := func() error {
		begun = true
		return work()
	}
	err := c.tryFiles(job, once)
	for range looks { // as for commands
		if begun || !errors.Is(err, ErrUnavailable) || !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOENT) {
			break
		}
		err = c.tryFiles(job, once)
	}
	return err
}

func (c *Confiner) tryFiles(job Job, work func() error) error {
	done := make(chan error, 1)
	var held []*marker
	OnThread(func() {
		err := c.confineFiles(job, &held)
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			err = refusal
		} else if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err == nil {
			err = work()
		}
		done <- err
	})
	err := <-done
	c.marks.release(held)
	return err
}

func (c *Confiner) confineFiles(job Job, held *[]*marker) error {
	if err := ownMounts(); err != nil {
		return err
	}
	blanks, err := newBlanks()
	if err != nil {
		return err
	}
	defer unix.Close(blanks)
	if err := unix.MoveMount(blanks, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount stand-ins: %w", err)
	}
	// /proc would lead to files as other threads of this process see them.
	below, others, err := procMounts()
	if err != nil {
		return err
	}
	for _, at := range append(others, below[:1]...) {
		if err := cover(blanks, at); err != nil {
			return err
		}
	}
	v := view{policy: job.Policy, blanks: blanks}
	if *held, err = c.arrange(&v, job.User); err != nil {
		return err
	}
	if err := job.User.Assume(); err != nil {
		return err
	}
	return keepCapabilities(func(int) bool { return false })
}
