package image

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// aptEntry is one source of packages.
type aptEntry struct {
	uris, suites, components []string
	// signedBy is the value of Signed-By as it stands, which may be an embedded
	// key of several lines.
	signedBy string
}

// hostSources returns those of the host's apt sources (below etc/apt) that are
// Debian's and carry the suite, as deb822 text; "" if the suite itself is not
// among them, and then mmdebstrap's own choice is the better one. Files that
// cannot be read are passed over, as apt does with files that it does not know.
func hostSources(etc, suite string) string {
	files, _ := filepath.Glob(filepath.Join(etc, "sources.list.d", "*"))
	var out strings.Builder
	var suites []string
	for _, file := range append([]string{filepath.Join(etc, "sources.list")}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var entries []aptEntry
		switch filepath.Ext(file) {
		case ".list":
			entries = parseOneLine(string(text))
		case ".sources":
			entries = parseDeb822(string(text))
		}
		for _, e := range entries {
			if e.narrow(suite); e.debian() {
				e.write(&out)
				suites = append(suites, e.suites...)
			}
		}
	}
	if !slices.Contains(suites, suite) {
		return ""
	}
	return out.String()
}

// narrow leaves what belongs to the suite and can be reached without the
// host's files.
func (e *aptEntry) narrow(suite string) {
	e.suites = slices.DeleteFunc(e.suites, func(s string) bool {
		return s != suite && s != suite+"-updates" && s != suite+"-security" && s != suite+"/updates"
	})
	e.uris = slices.DeleteFunc(e.uris, func(uri string) bool {
		u, err := url.Parse(uri)
		return err != nil || u.Scheme != "http" && u.Scheme != "https" || !debianPath(u.Path)
	})
}

// debianPath tells Debian's archives and their mirrors, which all keep the name,
// from other vendors' that use Debian's suite names.
func debianPath(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return part == "debian" || part == "debian-security" || part == "debian-archive"
	})
}

func (e *aptEntry) debian() bool {
	return len(e.suites) > 0 && len(e.uris) > 0 && slices.Contains(e.components, "main") &&
		(e.signedBy == "" || strings.Contains(e.signedBy, "debian") || strings.Contains(e.signedBy, "\n"))
}

func (e *aptEntry) write(out *strings.Builder) {
	fmt.Fprintf(out, "Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n",
		strings.Join(e.uris, " "), strings.Join(e.suites, " "))
	if e.signedBy != "" {
		fmt.Fprintf(out, "Signed-By: %s\n", e.signedBy)
	}
	out.WriteString("\n")
}

// parseOneLine reads a *.list file: deb [option=value ...] URI suite component...
func parseOneLine(text string) []aptEntry {
	var entries []aptEntry
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " ")
		rest = strings.TrimSpace(rest)
		var e aptEntry
		if options, after, has := strings.Cut(rest, "]"); has && strings.HasPrefix(options, "[") {
			for _, option := range strings.Fields(options[1:]) {
				if value, ok := strings.CutPrefix(option, "signed-by="); ok {
					e.signedBy = value
				}
			}
			rest = after
		}
		if fields := strings.Fields(rest); kind == "deb" && len(fields) > 2 {
			e.uris, e.suites, e.components = fields[:1], fields[1:2], fields[2:]
			entries = append(entries, e)
		}
	}
	return entries
}

// parseDeb822 reads a *.sources file: stanzas of "Field: value" with folded
// lines, parted by empty lines.
func parseDeb822(text string) []aptEntry {
	var entries []aptEntry
	fields, last := map[string]string{}, ""
	flush := func() {
		if slices.Contains(strings.Fields(fields["types"]), "deb") && !slices.Contains([]string{"no", "false", "0", "off"}, fields["enabled"]) {
			entries = append(entries, aptEntry{
				uris:       strings.Fields(fields["uris"]),
				suites:     strings.Fields(fields["suites"]),
				components: strings.Fields(fields["components"]),
				signedBy:   fields["signed-by"],
			})
		}
		fields, last = map[string]string{}, ""
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \t\r")
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += "\n" + line
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(name)
			fields[last] = strings.TrimSpace(value)
		}
	}
	flush()
	return entries
}
