package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
)

// worker is one connection, and those that follow it.
type worker struct {
	url, dir, mark string
	patience       time.Duration

	counts
	notes []string  // what went wrong, the first few
	clean time.Time // when the first whole round after the fault had ended

	c       *client.Client // nil while there is none
	session string
	keeper  string // what the session's first process printed
	serial  int
}

// errWrong is an answer that is not what it should be.
var errWrong = errors.New("wrong")

func (w *worker) run(ctx context.Context, ended <-chan struct{}) {
	for ctx.Err() == nil {
		calm := isClosed(ended)
		err := w.attach(ctx)
		if err == nil {
			err = w.round(ctx)
			if err == nil {
				w.rounds++
			} else if ctx.Err() == nil {
				w.lost++
			}
		} else {
			w.refused++
		}
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			if calm {
				w.clean = time.Now()
				break
			}
			pause(ctx, 20*time.Millisecond)
			continue
		}
		if errors.Is(err, errWrong) {
			w.wrong++
		}
		w.note(err)
		w.drop()
		pause(ctx, 100*time.Millisecond)
	}
	w.drop()
}

// attach connects if there is no connection, and comes back to the session.
func (w *worker) attach(ctx context.Context) error {
	if w.c != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*w.patience)
	defer cancel()
	conn, err := client.Dial(ctx, w.url, nil)
	if err != nil {
		return err
	}
	w.c = client.New(conn, nil)
	id, err := w.c.Initialize(ctx, "faultprobe", w.session)
	if e, ok := errors.AsType[*proto.Error](err); ok && e.Code != proto.CodeAttached {
		// The session is gone. Anew, so that the rest can be seen.
		w.sessions++
		w.session, w.keeper = "", ""
	}
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	w.session = id
	return nil
}

func (w *worker) drop() {
	if w.c != nil {
		_ = w.c.Close()
		<-w.c.Done()
		w.c = nil
	}
}

func (w *worker) note(err error) {
	text := err.Error()
	if len(w.notes) < 8 && (len(w.notes) == 0 || w.notes[len(w.notes)-1] != text) {
		w.notes = append(w.notes, text)
	}
}

// call makes a call that is lost if its answer takes too long.
func (w *worker) call(ctx context.Context, method string, params any) (proto.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	v, err := w.c.Call(ctx, method, params)
	if err != nil {
		return v, fmt.Errorf("%s: %w", method, err)
	}
	return v, nil
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
