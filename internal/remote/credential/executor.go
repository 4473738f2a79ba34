package credential

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/secret"
)

// firstLineTime bounds the wait for the first credential.
const firstLineTime = 30 * time.Second

// The words are the reference's, but for the form of a frame.
var (
	errFrame       = errors.New(`invalid exec-server executor credential frame: expected {"version":1,"environment_id":"ID","token":"TOKEN","expires_at":SECONDS} and a line feed`)
	errEnvironment = errors.New("exec-server executor credential is for a different environment")
	errPipe        = errors.New("exec-server executor credential pipe closed")
	errFirst       = errors.New("timed out waiting for exec-server executor credential")
)

// executor is the newest of the tokens that a pipe brings.
type executor struct {
	notice
	environment string
	done        chan struct{}

	mu sync.Mutex
	// mu guards what follows.
	token   secret.Secret
	expires time.Time
	err     error // why done is closed
}

// ExecutorStdin is the newest of the tokens that come on r, one JSON object a
// line. It waits up to 30 s for the first. A later line counts at once, and one
// that is not what it should be ends the credential with an error; so does nothing
// else but the end of r, which ends it in order. The tokens are made for one
// environment and expire.
//
// A goroutine reads r to its end or to the first bad line.
func ExecutorStdin(ctx context.Context, r io.Reader, environmentID string) (Source, error) {
	e := &executor{environment: environmentID, done: make(chan struct{})}
	first := e.Changed()
	go e.read(r)
	ctx, cancel := context.WithTimeoutCause(ctx, firstLineTime, errFirst)
	defer cancel()
	select {
	case <-first:
		return e, nil
	case <-e.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case <-first: // and the end right after it
		return e, nil
	default:
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	return nil, errPipe
}

// read takes the lines.
func (e *executor) read(r io.Reader) {
	defer close(e.done)
	in := bufio.NewReaderSize(r, secret.Max)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			err = e.take(line)
		case err == bufio.ErrBufferFull || len(line) > 0:
			err = errFrame
		default:
			return // the owner has left
		}
		if err != nil {
			e.mu.Lock()
			e.err = err
			e.mu.Unlock()
			return
		}
	}
}

// take makes a line the credential.
func (e *executor) take(line []byte) error {
	f, err := parseFrame(line)
	if err != nil {
		return err
	}
	if f.environment != e.environment {
		return errEnvironment
	}
	if !time.Now().Before(f.expires) {
		return ErrExpired
	}
	e.mu.Lock()
	e.token, e.expires = f.token, f.expires
	e.mu.Unlock()
	e.fire()
	return nil
}

func (e *executor) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !time.Now().Before(e.expires) {
		return ErrExpired
	}
	bearer(r, e.token)
	return nil
}

func (e *executor) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

func (e *executor) Allows(base *url.URL) error { return secureRule(base) }
func (e *executor) Scoped() bool               { return true }
func (e *executor) Done() <-chan struct{}      { return e.done }
