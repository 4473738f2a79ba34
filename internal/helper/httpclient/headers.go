package httpclient

import "slices"

// field is a header with all its values, in the order in which they came. The
// name is in lower case.
type field struct {
	name   string
	values []string
}

// headers keeps fields in the order in which the reference's map has them: that
// of insertion, except that the last field takes the place of one that is
// removed. Harnesses and origins see that order.
type headers []field

func (h headers) index(name string) int {
	return slices.IndexFunc(h, func(f field) bool { return f.name == name })
}

func (h headers) has(name string) bool { return h.index(name) >= 0 }

// get returns the first value of a name.
func (h headers) get(name string) string {
	if i := h.index(name); i >= 0 {
		return h[i].values[0]
	}
	return ""
}

func (h headers) values(name string) []string {
	if i := h.index(name); i >= 0 {
		return h[i].values
	}
	return nil
}

func (h *headers) add(name, value string) {
	if i := h.index(name); i >= 0 {
		(*h)[i].values = append((*h)[i].values, value)
		return
	}
	*h = append(*h, field{name, []string{value}})
}

func (h *headers) set(name, value string) {
	if i := h.index(name); i >= 0 {
		(*h)[i].values = []string{value}
		return
	}
	*h = append(*h, field{name, []string{value}})
}

func (h *headers) setDefault(name, value string) {
	if !h.has(name) {
		h.add(name, value)
	}
}

func (h *headers) remove(names ...string) {
	for _, name := range names {
		if i := h.index(name); i >= 0 {
			last := len(*h) - 1
			(*h)[i] = (*h)[last]
			*h = (*h)[:last]
		}
	}
}

// isToken tells whether s is a token of RFC 9110, as methods and names are.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !slices.Contains([]byte("!#$%&'*+-.^_`|~"), c) {
			return false
		}
	}
	return s != ""
}

// isValue tells whether s may be a header's value.
func isValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isVisible tells whether a value can be told to a harness: tabs and printable
// ASCII.
func isVisible(s string) bool {
	return isValue(s) && !slices.ContainsFunc([]byte(s), func(c byte) bool { return c >= 0x80 })
}

// lower is strings.ToLower for ASCII alone.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}
