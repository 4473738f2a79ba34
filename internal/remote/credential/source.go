package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Source is where a credential comes from. It may be used from several goroutines.
type Source interface {
	// Authorize puts the credential on a request to the registry or, with AWS's
	// signatures, on the upgrade to a WebSocket. body is what is sent, nil for
	// nothing. Method, URL, Host and Content-Type have to be there already. Errors
	// are ErrUnavailable or that of ctx.
	Authorize(ctx context.Context, r *http.Request, body []byte) error
	// Allows says whether the credential may be sent to a registry.
	Allows(base *url.URL) error
	// Scoped credentials are made for one environment. The rendezvous has to be
	// reached over TLS or loopback, and bodies of errors are not shown.
	Scoped() bool
	// Changed returns a channel that is closed when another credential may be there
	// than at the time of the call. nil: there never is another by itself.
	Changed() <-chan struct{}
	// Done is closed when the credential's owner has left. nil: that is not watched.
	Done() <-chan struct{}
	// Err tells, after Done, what was wrong; nil if the owner left in order.
	Err() error
}

// Refresher is a Source that can look for another credential when it is told
// that the registry refuses the present one.
type Refresher interface {
	Refused()
}

// Placed is a Source that tells where its credential is from, in words that name no
// secret: a path, a variable, a program. "" is nothing to tell.
type Placed interface {
	Place() string
}

// ErrUnavailable is what errors of Authorize are when there is no credential
// that could be sent: a file is missing, a command fails, a token has expired.
var ErrUnavailable = errors.New("there is no credential")

// ErrExpired is ErrUnavailable, for a token of which is known that it has expired.
var ErrExpired error = &unavailable{errors.New("exec-server executor credential is expired")}

type unavailable struct{ err error }

func (u *unavailable) Error() string        { return u.err.Error() }
func (u *unavailable) Unwrap() error        { return u.err }
func (u *unavailable) Is(target error) bool { return target == ErrUnavailable }

// lasting is the part of a Source whose credential is always the same.
type lasting struct{}

func (lasting) Changed() <-chan struct{} { return nil }
func (lasting) Done() <-chan struct{}    { return nil }
func (lasting) Err() error               { return nil }
