// Package units has the quantities that people write with units: sizes and spans
// of time.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as such or with a binary unit: "4GiB".
type Size int64

var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalText reads "4096", "512MiB" and the like. Units that are not binary,
// fractions and negative sizes are errors.
func (s *Size) UnmarshalText(text []byte) error {
	digits, factor := string(text), int64(1)
	for _, u := range units {
		if number, ok := strings.CutSuffix(digits, u.name); ok {
			digits, factor = strings.TrimSuffix(number, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/factor {
		return fmt.Errorf("%q is no size; write a number of bytes or a whole number with KiB, MiB, GiB or TiB", text)
	}
	*s = Size(int64(n) * factor)
	return nil
}

// String writes the size with the largest unit that leaves it whole.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Duration is a span of time, written with units: "80s". It is a struct so that
// the decoder takes no bare number for nanoseconds.
type Duration struct{ time.Duration }

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`%q is no duration; write a number with a unit, such as "500ms", "80s" or "5m"`, text)
	}
	d.Duration = span
	return nil
}
