package credential

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/exec-server/exec-server/internal/secret"
)

// frame is a line of ExecutorStdin.
type frame struct {
	environment string
	token       secret.Secret
	expires     time.Time
}

// parseFrame reads a line. It wants the four fields, each once, and no other.
func parseFrame(line []byte) (frame, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	fields := map[string]any{}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return frame{}, errFrame
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return frame{}, errFrame
		}
		value, err := d.Token()
		name, _ := key.(string)
		if _, twice := fields[name]; err != nil || twice {
			return frame{}, errFrame
		}
		if _, nested := value.(json.Delim); nested {
			return frame{}, errFrame
		}
		fields[name] = value
	}
	if _, err := d.Token(); err != nil {
		return frame{}, errFrame
	}
	if _, err := d.Token(); err != io.EOF || len(fields) != 4 {
		return frame{}, errFrame
	}
	version, _ := fields["version"].(json.Number)
	environment, ok := fields["environment_id"].(string)
	text, _ := fields["token"].(string)
	number, _ := fields["expires_at"].(json.Number)
	seconds, err := strconv.ParseUint(number.String(), 10, 64)
	if version != "1" || !ok || err != nil {
		return frame{}, errFrame
	}
	token, err := secret.Token(text)
	if err != nil {
		return frame{}, errFrame
	}
	// Beyond, the seconds of time.Time would overflow; it is long after everything.
	seconds = min(seconds, math.MaxUint32<<8)
	return frame{environment, token, time.Unix(int64(seconds), 0)}, nil
}
