package hello

// reader takes apart what TLS writes. Once something is missing it is bad, and all
// that it gives is empty.
type reader struct {
	rest []byte
	bad  bool
}

// empty says whether there is nothing left, or nothing that could be believed.
func (r *reader) empty() bool { return r.bad || len(r.rest) == 0 }

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// number takes a number of n bytes.
func (r *reader) number(n int) int {
	v := 0
	for _, b := range r.take(n) {
		v = v<<8 | int(b)
	}
	return v
}

// vector takes what has its length before it, in n bytes.
func (r *reader) vector(n int) *reader {
	b := r.take(r.number(n))
	return &reader{rest: b, bad: r.bad}
}
