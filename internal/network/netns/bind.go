package netns

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// bindQueue asks for all at once, so that there is never a queue with other settings.
func bindQueue() []byte {
	m := message(nil, msgConfig, unix.NLM_F_ACK)
	m = attribute(m, attrConfigCommand, commandBind, 0, 0, 0)
	m = attribute(m, attrConfigParams, append(binary.BigEndian.AppendUint32(nil, copyRange), copyPacket)...)
	m = attribute(m, attrConfigLength, binary.BigEndian.AppendUint32(nil, queueLength)...)
	return finish(m)
}

// bindLog asks to be told of each packet at once.
func bindLog() []byte {
	m := message(nil, msgLogConfig, unix.NLM_F_ACK)
	m = attribute(m, attrConfigCommand, commandBind)
	m = attribute(m, attrConfigParams, append(binary.BigEndian.AppendUint32(nil, copyRange), copyPacket, 0)...)
	m = attribute(m, attrLogBatch, binary.BigEndian.AppendUint32(nil, 1)...)
	return finish(m)
}

// bind waits a second for a process that had the number and is about to end.
func (q *queue) bind(m []byte) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := q.configure(m)
		taken := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EBUSY)
		if !taken || time.Now().After(end) {
			return err
		}
	}
}

// configure sends a message and waits for what the kernel says to it.
func (q *queue) configure(m []byte) error {
	if err := q.send(m); err != nil {
		return err
	}
	buf := make([]byte, readSize)
	for {
		b, err := q.receive(buf)
		if err != nil {
			return err
		}
		for len(b) > 0 {
			typ, body, rest, err := next(b)
			if err != nil {
				return err
			}
			if typ == unix.NLMSG_ERROR && len(body) >= 4 {
				if errno := int32(binary.NativeEndian.Uint32(body)); errno != 0 {
					return unix.Errno(-errno)
				}
				return nil
			}
			// A packet that came in between will be sent again.
			if p := parseQueued(body, attrPayload); typ == msgPacket && p.verdict {
				q.verdict(p.id, verdictDrop, markRefused)
			}
			b = rest
		}
	}
}
