package remote

import "time"

// SetPause has a link wait as long as f says before its n-th try in a row for
// another socket. It must not run yet.
func (l *Link) SetPause(f func(n int) time.Duration) { l.pause = f }
