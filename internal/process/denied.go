package process

import "bytes"

// denialWords are what programs say when a sandbox is in their way.
var denialWords = [][]byte{
	[]byte("operation not permitted"), []byte("permission denied"), []byte("read-only file system"),
	[]byte("seccomp"), []byte("sandbox"), []byte("landlock"), []byte("failed to write file"),
}

// deniedBySandbox guesses whether confinement is why a command failed, from its
// exit code and the output that is retained.
func (r *ring) deniedBySandbox(code int) bool {
	const badSystemCall = 128 + 31
	switch {
	case code == 0:
		return false
	case r.mentions(denialWords):
		return true
	}
	return code == badSystemCall
}

// mentions looks for words, in any case, in the output of each stream, across
// the bounds of chunks.
func (r *ring) mentions(words [][]byte) bool {
	var text [3][]byte
	for _, c := range r.after(0, ^uint64(0)) {
		text[c.Stream] = append(text[c.Stream], c.Data...)
	}
	for _, t := range text {
		t = bytes.ToLower(t)
		for _, w := range words {
			if bytes.Contains(t, w) {
				return true
			}
		}
	}
	return false
}
