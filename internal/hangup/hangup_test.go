package hangup

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (ours, theirs int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	return fds[0], fds[1]
}

func TestTheEndIsNoticedBehindUnreadData(t *testing.T) {
	for name, end := range map[string]func(int) error{
		"close":      unix.Close,
		"half close": func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) },
	} {
		ours, theirs := pair(t)
		if _, err := unix.Write(theirs, []byte("unread")); err != nil {
			t.Fatal(err)
		}
		if Now(ours) {
			t.Errorf("%s: it ends before it does", name)
		}
		got := make(chan bool)
		go func() { got <- Await(ours, nil) }()
		time.Sleep(10 * time.Millisecond) // so that it waits, mostly
		if err := end(theirs); err != nil {
			t.Fatal(err)
		}
		if !<-got || !Now(ours) {
			t.Errorf("%s: it is not noticed", name)
		}
	}
}

func TestAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _ = w.WriteString("unread")
	if Now(int(r.Fd())) {
		t.Error("it ends before it does")
	}
	_ = w.Close()
	if !Await(int(r.Fd()), nil) {
		t.Error("it is not noticed")
	}
}

func TestStop(t *testing.T) {
	ours, theirs := pair(t)
	defer unix.Close(theirs)
	stop := make(chan struct{})
	got := make(chan bool)
	go func() { got <- Await(ours, stop) }()
	_, _ = unix.Write(theirs, []byte("more")) // is no end
	close(stop)
	if <-got {
		t.Error("it tells of an end")
	}
}

// What waiting takes is given back.
func TestNoDescriptorIsLeft(t *testing.T) {
	ours, theirs := pair(t)
	defer unix.Close(theirs)
	stop := make(chan struct{})
	close(stop)
	before := open(t)
	for range 100 {
		Await(ours, stop)
	}
	if after := open(t); after > before {
		t.Errorf("%d descriptors, then %d", before, after)
	}
}

func open(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
