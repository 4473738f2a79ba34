//go:build !amd64

package confine

// initProgram has not been written for this machine yet; without it commands
// under a profile that restricts files are refused.
var initProgram []byte
