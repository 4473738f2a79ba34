package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/remote/credential"
)

const (
	// timeout bounds a call with its answer, and is the reference's. The search for
	// a credential is not in it.
	timeout = 10 * time.Second
	// maxAnswer bounds an answer, in bytes, as it was sent and decoded.
	maxAnswer = 1 << 20
)

// Client makes calls for one environment.
type Client struct {
	// Base is the URL of the registry, to which the paths of the calls are appended.
	Base string
	// EnvironmentID is used without the blanks around it. It goes into URLs as it
	// is, so that it should be of letters, digits, - and _.
	EnvironmentID string
	Credential    credential.Source
	// HTTP must not follow redirects, nor decode answers: egress.Client.HTTP.
	HTTP *http.Client
}

// Check says what is wrong with the client, before a call is made: the URL, the
// environment's id, or that the credential must not be sent there.
func (c *Client) Check() error {
	_, err := c.url("")
	return err
}

// url is where a call goes.
func (c *Client) url(call string) (*url.URL, error) {
	base, err := url.Parse(c.Base)
	switch {
	case err != nil:
		return nil, errors.New("invalid remote exec-server registration URL")
	case base.Scheme == "":
		return nil, errors.New("invalid remote exec-server registration URL: relative URL without a base")
	case c.id() == "":
		return nil, errors.New("environment registry configuration error: environment id is required for remote exec-server registration")
	}
	if err := c.Credential.Allows(base); err != nil {
		return nil, err
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" {
		return nil, errors.New("invalid remote exec-server registration URL: it has to be http or https, with a host")
	}
	// The text is what counts, as in the reference: a query of the base stays where it is.
	u, err := url.Parse(strings.TrimRight(c.Base, "/") + "/cloud/environment/" + c.id() + "/" + call)
	if err != nil {
		return nil, errors.New("invalid remote exec-server registration URL: the environment id does not fit in")
	}
	return u, nil
}

func (c *Client) id() string { return strings.TrimSpace(c.EnvironmentID) }

// post makes a call, and returns the answer if the status is one of success.
func (c *Client) post(ctx context.Context, call string, header http.Header, body any) ([]byte, error) {
	u, err := c.url(call)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the call: %w", err)
	}
	r := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: header,
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
	}
	header.Set("Content-Type", "application/json")
	if err := c.Credential.Authorize(ctx, r, text); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("environment registry authentication error: %w", err)
	}
	header.Set("Accept", "*/*")
	header.Set("Accept-Encoding", acceptEncoding)
	header["User-Agent"] = nil // net/http would name itself
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.HTTP.Do(r.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("environment registry request failed: %w", hideError(header, err))
	}
	defer resp.Body.Close()
	answer, err := read(resp)
	if resp.StatusCode/100 == 2 {
		if err != nil {
			return nil, fmt.Errorf("environment registry request failed: %w", err)
		}
		return answer, nil
	}
	if err != nil {
		answer = nil // the status alone says enough
	}
	refusal := c.refusal(r, resp, answer)
	if call != validate { // which judges a harness
		refusal.Hint = c.hintOf(refusal)
	}
	if source, ok := c.Credential.(credential.Refresher); ok && refusal.authentication() {
		source.Refused()
	}
	return nil, refusal
}
