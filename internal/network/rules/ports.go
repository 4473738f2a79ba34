package rules

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ParsePorts reads "443" and "8000-8100".
func ParsePorts(s string) (Ports, error) {
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	first, err := strconv.ParseUint(low, 10, 16)
	last, err2 := strconv.ParseUint(high, 10, 16)
	switch {
	case err != nil || err2 != nil || first == 0 || last == 0:
		return Ports{}, fmt.Errorf(`%q is neither a port from 1 to 65535 nor a range such as "8000-8100"`, s)
	case last < first:
		return Ports{}, fmt.Errorf(`%q is reversed: the lower port comes first, as in "%d-%d"`, s, last, first)
	}
	return Ports{uint16(first), uint16(last)}, nil
}

// String is what ParsePorts reads.
func (p Ports) String() string {
	if p.First == p.Last {
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// MarshalJSON writes a port as a number and a range as a text, as the configuration
// has them.
func (p Ports) MarshalJSON() ([]byte, error) {
	if p.First == p.Last {
		return json.Marshal(p.First)
	}
	return json.Marshal(p.String())
}

// UnmarshalJSON reads that, and what was written before: {"first": 1, "last": 2}.
func (p *Ports) UnmarshalJSON(text []byte) (err error) {
	switch text[0] {
	case '{':
		var old struct{ First, Last uint16 }
		if err := json.Unmarshal(text, &old); err != nil {
			return err
		}
		*p = Ports{old.First, old.Last}
		return nil
	case '"':
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		*p, err = ParsePorts(s)
		return err
	}
	*p, err = ParsePorts(string(text))
	return err
}
