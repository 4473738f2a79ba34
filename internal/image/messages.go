package image

import (
	"bytes"
	"slices"
	"strings"
)

// messages reads mmdebstrap's standard error.
type messages struct {
	progress Progress
	partial  []byte
	failures []string
}

var steps = map[string]string{
	"running apt-get update":                          "reading the package lists",
	"downloading packages with apt":                   "downloading the essential packages",
	"extracting archives":                             "extracting the essential packages",
	"installing essential packages":                   "installing the essential packages",
	"installing remaining packages inside the chroot": "downloading and installing the other packages",
	"cleaning package lists and apt cache":            "cleaning up",
	"creating tarball":                                "packing the image",
}

func (m *messages) Write(b []byte) (int, error) {
	m.partial = append(m.partial, b...)
	for {
		i := bytes.IndexAny(m.partial, "\r\n")
		if i < 0 {
			// No message is this long; and one that is must not fill memory.
			if len(m.partial) > 64<<10 {
				m.partial = nil
			}
			return len(b), nil
		}
		line := string(m.partial[:i])
		m.partial = m.partial[i+1:]
		if step, ok := steps[strings.TrimSuffix(strings.TrimPrefix(line, "I: "), "...")]; ok {
			m.progress.Step(step)
		}
		if text, ok := strings.CutPrefix(line, "E: "); ok && len(m.failures) < 100 && !slices.Contains(m.failures, text) {
			m.failures = append(m.failures, text)
		}
	}
}

// errors is the first error, which is the cause, and the last, which says what
// it stopped.
func (m *messages) errors() string {
	switch n := len(m.failures); n {
	case 0, 1:
		return strings.Join(m.failures, "")
	default:
		return m.failures[0] + "; " + m.failures[n-1]
	}
}
