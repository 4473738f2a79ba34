// Package hangup notices that a peer has gone while nothing is read from it, as
// when too much of it waits already.
package hangup

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ended are the events that a peer that is gone, or sends no more, makes, whatever
// lies unread in front of them.
const ended = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR

// Now tells whether the peer has ended the connection, or its half of it.
func Now(fd int) bool { return poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}, 0) }

// Await blocks its thread until the peer has ended the connection, which is
// true, or stop was closed. The descriptor must stay open meanwhile. If the
// machine lacks what waiting takes, it only waits for stop.
func Await(fd int, stop <-chan struct{}) bool {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		<-stop
		return Now(fd)
	}
	done, woken := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(woken)
		select {
		case <-stop:
			_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		case <-done:
		}
	}()
	gone := poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}, {Fd: int32(wake), Events: unix.POLLIN}}, -1)
	close(done)
	<-woken
	_ = unix.Close(wake)
	return gone
}

// poll tells whether the first descriptor shows an end.
func poll(fds []unix.PollFd, timeout int) bool {
	for {
		_, err := unix.Poll(fds, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && fds[0].Revents&ended != 0
	}
}
