package address

import "strings"

// maxName is the longest name of the domain system in its written form.
const maxName = 253

// Name is a name in the form in which it is compared: in lower case, without a final
// dot. It is not ok if it is an address or no name of a host.
func Name(s string) (name string, ok bool) {
	name = strings.ToLower(strings.TrimSuffix(s, "."))
	if name == "" || len(name) > maxName {
		return "", false
	}
	rest, last, more := name, "", true
	for more {
		last, rest, more = strings.Cut(rest, ".")
		if last == "" || len(last) > 63 || strings.ContainsFunc(last, foreign) {
			return "", false
		}
	}
	// What ends in a number is an address to many programs, and to some of them
	// another one than it looks like.
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return "", false
	}
	return name, true
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
