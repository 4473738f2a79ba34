package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/remote/credential"
)

const (
	// maxMessage bounds what is told of an error's body, in characters.
	maxMessage = 4096
	// maxCode bounds an error's code, in bytes.
	maxCode = 256
	// maxRetryAfter bounds the wait that a registry can ask for.
	maxRetryAfter = time.Hour
)

// Error is an answer that is not one of success.
type Error struct {
	// Status is the HTTP status, 100 to 999.
	Status int
	// Code and Message are what the body says, in one line and without the token.
	// With a scoped credential Message is a fixed text, and there is no Code.
	Code, Message string
	// RetryAfter is what the registry asks to wait, at most 1 h; 0 for nothing.
	RetryAfter time.Duration
	// Hint is ours: where was asked, if nothing was found there, or where the
	// credential is from that was refused.
	Hint string
}

// authentication tells whether the credential may be what is refused.
func (e *Error) authentication() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

func (e *Error) Error() string {
	status := fmt.Sprintf("%d %s", e.Status, statusText(e.Status))
	if e.authentication() {
		return fmt.Sprintf("environment registry authentication error: environment registry authentication failed (%s): %s", status, e.Message) + e.hint()
	}
	if e.Code != "" {
		status += ", " + e.Code
	}
	return fmt.Sprintf("environment registry request failed (%s): %s", status, e.Message) + e.hint()
}

func (e *Error) hint() string {
	if e.Hint == "" {
		return ""
	}
	return " (" + e.Hint + ")"
}

// hintOf is what helps with an answer to a client.
func (c *Client) hintOf(e *Error) string {
	if e.Status == http.StatusNotFound {
		if base, err := url.Parse(c.Base); err == nil {
			return "asked at " + clean(base.Host+strings.TrimRight(base.EscapedPath(), "/"), maxCode)
		}
	}
	if source, ok := c.Credential.(credential.Placed); ok && e.authentication() && source.Place() != "" {
		return "with the key from " + clean(source.Place(), maxCode)
	}
	return ""
}

// statusText differs from net/http's where the reference's words do.
func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "<unknown status code>"
}

// refusal makes an answer an Error. No registry gets the token into a log by
// telling it.
func (c *Client) refusal(r *http.Request, resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	switch {
	case !c.Credential.Scoped():
		e.Code, e.Message = parseError(r.Header, body)
		if e.Message == "" && len(bytes.TrimSpace(body)) == 0 {
			e.Message = "empty or malformed error body"
			if e.authentication() {
				e.Message = "empty error body"
			}
		}
	case e.authentication():
		e.Message = "response body omitted"
	default:
		e.Message = "environment registry executor registration failed"
	}
	return e
}

// parseError finds the code and the message in the body of the error that a request
// with those headers was answered with.
func parseError(sent http.Header, body []byte) (code, message string) {
	var j struct {
		Error *struct {
			Code    *string `json:"code"`
			Message *string `json:"message"`
		} `json:"error"`
	}
	message = string(body)
	if err := json.Unmarshal(body, &j); err == nil && j.Error != nil {
		if j.Error.Code != nil {
			code = *j.Error.Code
		}
		if j.Error.Message != nil {
			message = *j.Error.Message
		}
	}
	return clean(hide(sent, code), maxCode), clean(hide(sent, message), maxMessage)
}

// hide takes what a request proves itself with out of an answer's words. Proxies and
// gateways repeat requests, in errors above all.
func hide(sent http.Header, text string) string {
	for _, name := range []string{"Authorization", "X-Amz-Security-Token"} {
		secret := sent.Get(name)
		if kind, token, ok := strings.Cut(secret, " "); ok && kind == "Bearer" {
			secret = token
		}
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// hideError is err, or one with its words if there is something to hide in them.
func hideError(sent http.Header, err error) error {
	text := err.Error()
	if hidden := hide(sent, text); hidden != text {
		return errors.New(hidden)
	}
	return err
}

// clean makes a text of somebody else fit for a line of a log.
func clean(text string, characters int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	if utf8.RuneCountInString(text) > characters {
		n := 0
		for i := range text {
			if n == characters {
				text = text[:i]
				break
			}
			n++
		}
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// retryAfter reads both forms of the header. What is neither means nothing.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		wait = time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
