package proto

import (
	"errors"
	"fmt"
	"strings"
)

// URI is a path as the wire carries it. The zero value is no path.
type URI struct {
	path    string // native, absolute and clean; "" if of another system
	foreign string // the URI as given, if it is of another system
	given   string // as given and normalised, if that is not how we write it
}

// FileURI returns the URI of a native absolute path.
func FileURI(path string) URI { return URI{path: cleanPath(path)} }

// Native is the path on this system. A URI of another system has none; the
// error is then an *Error with CodeInvalidRequest.
func (u URI) Native() (string, error) {
	if u.path == "" {
		return "", Invalid("'%s' is invalid on 'linux'", u.foreign)
	}
	return u.path, nil
}

// String is the URI in the form in which answers carry paths.
func (u URI) String() string {
	if u.path == "" {
		return u.foreign
	}
	return string(appendPathURI(nil, u.path))
}

// AppendURI appends the JSON string of a native path's URI.
func AppendURI(dst []byte, path string) []byte {
	return append(appendPathURI(append(dst, '"'), path), '"')
}

func appendPathURI(dst []byte, path string) []byte {
	return appendEscaped(append(dst, "file://"...), path, mustEscape)
}

// ParseURI reads a file URI by the rules that browsers have for URLs.
func ParseURI(text string) (URI, error) {
	// Tabs and line ends do not count anywhere in a URL.
	s := strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.Trim(text, " \x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"))
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !isScheme(scheme) {
		return URI{}, errors.New("invalid URI: relative URL without a base")
	}
	if !strings.EqualFold(scheme, "file") {
		return URI{}, fmt.Errorf("unsupported path URI scheme `%s`", strings.ToLower(scheme))
	}
	if rest, fragment, ok := strings.Cut(rest, "#"); ok {
		_ = fragment
		if strings.Contains(rest, "?") {
			return URI{}, errors.New("query parameters are not allowed in path URIs")
		}
		return URI{}, errors.New("fragments are not allowed in path URIs")
	}
	if strings.Contains(rest, "?") {
		return URI{}, errors.New("query parameters are not allowed in path URIs")
	}
	rest = strings.ReplaceAll(rest, `\`, "/")
	host := ""
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, rest, _ = strings.Cut(after, "/")
		if isDrive(host) || isBarDrive(host) { // file://C:/x
			host, rest = "", host+"/"+rest
		} else {
			rest = "/" + rest
		}
	}
	if host = strings.ToLower(host); host == "localhost" {
		host = ""
	} else if host != "" && host[0] != '[' && strings.ContainsAny(host, " :<>@^|") {
		return URI{}, errors.New("invalid URI: invalid international domain name")
	}
	if len(rest) > 1 && isBarDrive(rest[:2]) && (len(rest) == 2 || rest[2] == '/') {
		rest = rest[:1] + ":" + rest[2:]
	}
	segments := resolveDots(strings.Split(strings.TrimPrefix(rest, "/"), "/"))
	joined := "/" + strings.Join(segments, "/")
	path, err := decodePath(joined)
	if err != nil {
		return URI{}, err
	}
	if strings.IndexByte(path, 0) >= 0 {
		return URI{}, fmt.Errorf("'%s' is invalid on 'linux'", s)
	}
	bare := strings.TrimLeft(joined, "/")
	if first, _, _ := strings.Cut(bare, "/"); host != "" || isDrive(first) {
		return URI{foreign: "file://" + host + "/" + string(appendEscaped(nil, bare, givenEscape))}, nil
	}
	// An encoded slash separates too, and brings dots of its own.
	u := URI{path: cleanPath(path)}
	if given := "file://" + string(appendEscaped(nil, joined, givenEscape)); given != u.String() {
		u.given = given
	}
	return u, nil
}

// resolveDots takes the dot segments out of a URL's path, as browsers do: before
// anything in it is decoded, with %2e for a dot, and never above a drive.
func resolveDots(segments []string) []string {
	out := make([]string, 0, len(segments))
	for i, seg := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(seg), "%2e", ".") {
		case ".":
		case "..":
			if n := len(out); n > 1 || n == 1 && !isDrive(out[0]) {
				out = out[:n-1]
			}
		default:
			out = append(out, seg)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || (s[i] < '0' || s[i] > '9') && strings.IndexByte("+-.", s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

// isDrive says whether a segment is a Windows drive, like C: or C%3A.
func isDrive(s string) bool {
	return len(s) > 1 && isScheme(s[:1]) && (s[1:] == ":" || strings.EqualFold(s[1:], "%3a"))
}

// isBarDrive says whether it is one in the old way of writing, which counts
// where the path begins without a slash.
func isBarDrive(s string) bool { return len(s) == 2 && s[1] == '|' && isScheme(s[:1]) }

func decodePath(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if r, ok := hex4([]byte{'0', '0', s[i+1], s[i+2]}); ok {
				out = append(out, byte(r))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out), nil
}

// cleanPath makes a path absolute and resolves its dot segments as text.
func cleanPath(path string) string {
	segments := make([]string, 0, 8)
	for seg := range strings.SplitSeq(path, "/") {
		switch seg {
		case "", ".":
		case "..":
			if len(segments) > 0 {
				segments = segments[:len(segments)-1]
			}
		default:
			segments = append(segments, seg)
		}
	}
	return "/" + strings.Join(segments, "/")
}
