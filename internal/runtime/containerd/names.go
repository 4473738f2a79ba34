package containerd

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// idPrefix begins the ids of our containers.
const idPrefix = "e-"

var (
	validName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	validInstance = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

// checkName refuses a name that is no environment's: it becomes part of paths.
func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is not a name: 1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or a digit", name)
	}
	return nil
}

// newID returns an id for a container of the environment. Its snapshot, lease,
// cgroup and shared directory have it as their name, so that what is done late
// about one container never hits the next. containerd does not take every name
// that an environment may have, and has room for 76 bytes.
func newID(name string) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	words := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("._-", c) })
	return fmt.Sprintf("%s%s-%x", idPrefix, strings.Join(words, "-"), random)
}

// hostname is the name as a host's: at most 63 of a-z 0-9 -, and no - at the ends.
func hostname(name string) string {
	host := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return strings.TrimRight(host[:min(63, len(host))], "-")
}

// instance tells the daemons of a machine apart, in 12 hexadecimal digits.
func instance(state string) string {
	if base := filepath.Base(state); validInstance.MatchString(base) {
		return base
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(filepath.Clean(state))))[:12]
}
