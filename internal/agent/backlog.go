package agent

import (
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
)

// backlog is what waits behind the messages that are worked on. While it is full
// the connection is not read any more.
type backlog[T any] struct {
	items []waiting[T]
	bytes int
	room  chan struct{} // closed when there is room again; nil if nobody waits for it
}

type waiting[T any] struct {
	item T
	size int
}

const (
	// maxBacklog is how many messages may wait.
	maxBacklog = 128
	// maxBacklogBytes is how long they may be together. One message may go beyond.
	maxBacklogBytes = 8 << 20
)

func (b *backlog[T]) full() bool { return len(b.items) >= maxBacklog || b.bytes >= maxBacklogBytes }

func (b *backlog[T]) push(item T, size int) {
	b.items = append(b.items, waiting[T]{item, size})
	b.bytes += size
}

func (b *backlog[T]) pop() (item T, ok bool) {
	if len(b.items) == 0 {
		return item, false
	}
	first := b.items[0]
	b.items[0] = waiting[T]{} // nobody else may keep it
	b.items = b.items[1:]
	b.bytes -= first.size
	b.makeRoom()
	return first.item, true
}

func (b *backlog[T]) makeRoom() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// awaitRoom waits until there is room behind the messages that are worked on, or
// until the peer is gone, which is false: then nothing it sent counts any more.
// mu guards the backlog, and is held by the caller.
func (b *backlog[T]) awaitRoom(c *conn, mu *sync.Mutex) bool {
	room := make(chan struct{})
	b.room = room
	mu.Unlock()
	defer mu.Lock()
	if w, ok := c.in.(proto.Watcher); ok && w.AwaitEnd(room) {
		c.end() // the next read tells the reader
		return false
	}
	<-room
	return true
}
