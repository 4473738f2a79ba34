package rules

import (
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
	if err != nil || err2 != nil || first == 0 || last < first {
		return Ports{}, fmt.Errorf(`%q is neither a port from 1 to 65535 nor a range such as "8000-8100"`, s)
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
