package relay

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
)

const (
	// maxPlaintext is what a record may hold, in bytes.
	maxPlaintext = 60 << 10
	// maxAhead is how far before its turn a record may come.
	maxAhead = 64
	// maxEarly bounds the bytes of records that wait for their turn.
	maxEarly = 1 << 20
	// growFrom is the first size of a message's buffer. A longer one grows with
	// what arrives, not with what its length promises.
	growFrom = 4 << 10
)

var (
	errTooFar    = fmt.Errorf("a record came more than %d before its turn", maxAhead)
	errTooMany   = fmt.Errorf("more than %d bytes of records wait for an earlier one", maxEarly)
	errRecord    = fmt.Errorf("a record holds more than %d bytes", maxPlaintext)
	errExhausted = errors.New("the numbers of records are used up")
)

// inbox makes messages of a stream's records. The stream's lock guards it.
type inbox struct {
	channel *noise.Channel
	next    uint32 // number of the record whose turn it is
	early   map[uint32][]byte
	waiting int // bytes in early

	header  int         // bytes of the present message's length that are there
	want    int         // the length
	message proto.Frame // the message so far; nil between messages
	budget  *budget
	held    int64 // of the budget, for message

	// deliver takes a whole message, and what it holds of the budget.
	deliver func(m proto.Frame, held int64) error
}

// add takes a record, which it changes. An error means that the stream is beyond
// repair.
func (in *inbox) add(seq uint32, record []byte) error {
	ahead := seq - in.next // wraps for what is behind
	if seq < in.next || in.early[seq] != nil {
		return nil // once more
	}
	if len(record) > maxPlaintext+noise.Overhead {
		return errRecord
	}
	if ahead > maxAhead {
		return errTooFar
	}
	if ahead > 0 {
		if in.waiting += len(record); in.waiting > maxEarly {
			return errTooMany
		}
		if in.early == nil {
			in.early = map[uint32][]byte{}
		}
		in.early[seq] = slices.Clone(record)
		return nil
	}
	for record != nil {
		if in.next == math.MaxUint32 {
			return errExhausted
		}
		if err := in.open(record); err != nil {
			return err
		}
		in.next++
		record = in.early[in.next]
		delete(in.early, in.next)
		in.waiting -= len(record)
	}
	return nil
}

func (in *inbox) open(record []byte) error {
	text, err := in.channel.Open(record[:0], record)
	if err != nil {
		return err
	}
	for len(text) > 0 {
		if in.message == nil {
			in.message, in.header, in.want = proto.NewFrame(0), 0, 0
		}
		if in.header < 4 {
			in.want = in.want<<8 | int(text[0])
			text = text[1:]
			if in.header++; in.header == 4 {
				if in.want == 0 || in.want > proto.MaxRequest {
					return fmt.Errorf("a message of %d bytes", in.want)
				}
				in.message = proto.NewFrame(min(in.want, growFrom))
			}
			continue
		}
		if text, err = in.fill(text); err != nil {
			return err
		}
	}
	return nil
}

// fill moves text into the message and returns what follows it.
func (in *inbox) fill(text []byte) ([]byte, error) {
	n := min(len(text), proto.HeaderSize+in.want-len(in.message))
	if len(in.message)+n > cap(in.message) {
		size := min(max(2*cap(in.message), len(in.message)+n), proto.HeaderSize+in.want)
		if err := in.hold(size); err != nil {
			return nil, err
		}
		in.message = append(make(proto.Frame, 0, size), in.message...)
	}
	in.message = append(in.message, text[:n]...)
	if len(in.message) == proto.HeaderSize+in.want {
		m, held := in.message.Seal(), in.held
		in.message, in.held = nil, 0
		if err := in.deliver(m, held); err != nil {
			return nil, err
		}
	}
	return text[n:], nil
}

// hold makes sure that the message so far may take size bytes.
func (in *inbox) hold(size int) error {
	more := int64(size) - in.held
	if !in.budget.take(more) {
		return errBudget
	}
	in.held += more
	return nil
}

// drop gives up what has not become a message.
func (in *inbox) drop() {
	in.budget.give(in.held)
	in.message, in.held, in.early = nil, 0, nil
}
