package confine

import (
	"errors"

	"golang.org/x/sys/unix"
)

// looks is how often the paths of a policy are looked up while they change.
const looks = 5

// arrange looks a view's paths up and mounts it. What stands in for missing
// paths is the caller's to release, also after an error.
func (c *Confiner) arrange(v *view, user User) (marks []*marker, err error) {
	// A mount that came in later would not be restricted.
	if err := propagation(unix.MS_PRIVATE); err != nil {
		return nil, err
	}
	for range looks {
		c.marks.release(marks)
		v.drop()
		v.plan, marks, err = v.policy.plan(&c.marks, user)
		if err == nil {
			err = v.capture()
		}
		if !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	c.marks.sweep()
	defer v.drop()
	if err != nil {
		return marks, err
	}
	return marks, v.build()
}
