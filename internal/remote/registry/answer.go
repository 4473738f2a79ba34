package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/exec-server/exec-server/internal/remote/credential"
)

// maxField bounds what an answer says of a registration, in bytes.
const maxField = 16 << 10

// ErrAnswer is what errors are when a registry's answer of success is not what it
// should be.
var ErrAnswer = errors.New("the registry's answer cannot be used")

// ErrInvalid is that the registry does not know a harness's key.
var ErrInvalid = errors.New("the registry says that the harness's key is not valid")

type answerError struct{ text string }

func (a *answerError) Error() string        { return a.text }
func (a *answerError) Is(target error) bool { return target == ErrAnswer }

func badAnswer(format string, args ...any) error {
	return &answerError{fmt.Sprintf(format, args...)}
}

var errInsecure = badAnswer("environment registry configuration error: remote transport requires wss for non-loopback endpoints")

// secure tells whether a rendezvous is reached over TLS or loopback.
func secure(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return false
	}
	return u.Scheme == "wss" || u.Scheme == "ws" && credential.IsLoopback(u.Hostname())
}

// parse reads the fields of an answer, all of them texts. Others are ignored.
func parse(answer []byte, names ...string) (map[string]string, error) {
	var j map[string]json.RawMessage
	if err := json.Unmarshal(answer, &j); err != nil {
		return nil, badAnswer("failed to serialize or deserialize exec-server JSON: it is not an object")
	}
	fields := make(map[string]string, len(names))
	for _, name := range names {
		raw, ok := j[name]
		if !ok {
			return nil, badAnswer("failed to serialize or deserialize exec-server JSON: missing field `%s`", name)
		}
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil {
			return nil, badAnswer("failed to serialize or deserialize exec-server JSON: field `%s` is not a string", name)
		}
		if len(*text) > maxField {
			return nil, badAnswer("exec-server protocol error: field `%s` has more than %d bytes", name, maxField)
		}
		fields[name] = *text
	}
	return fields, nil
}
