package codexhome

import "strings"

// want is a set of key paths.
type want struct {
	all  bool
	next map[string]*want
}

func wanted(paths [][]string) *want {
	root := &want{next: map[string]*want{}}
	for _, path := range paths {
		at := root
		for _, key := range path {
			next := at.next[key]
			if next == nil {
				next = &want{next: map[string]*want{}}
				at.next[key] = next
			}
			at = next
		}
		at.all = true
	}
	return root
}

// project returns a table with what of n the paths lead to. A path that runs
// through something else than a table gives that; the tables on its way are there
// even if the path ends nowhere.
func (n *node) project(w *want) *node {
	out := newTable()
	for _, key := range n.keys {
		next, value := w.next[key], n.members[key]
		switch {
		case next == nil:
		case next.all || value.kind != table:
			out.set(key, value)
		default:
			out.set(key, value.project(next))
		}
	}
	return out
}

// without returns a table without some of its keys.
func (n *node) without(keys ...string) *node {
	drop := map[string]bool{}
	for _, key := range keys {
		drop[key] = true
	}
	out := newTable()
	for _, key := range n.keys {
		if !drop[key] {
			out.set(key, n.members[key])
		}
	}
	return out
}

// String writes a table as a TOML document.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b, "", false)
	return b.String()
}

// isTables tells whether a value is written below headers of its own.
func (n *node) isTables() bool {
	if n.kind == array {
		for _, item := range n.items {
			if item.kind != table {
				return false
			}
		}
		return len(n.items) > 0
	}
	return n.kind == table
}

// write writes a table: what fits in a line first, then the tables in it. path is
// "" for the document; element tells that it is one of an array.
func (n *node) write(b *strings.Builder, path string, element bool) {
	lines := 0
	for _, v := range n.members {
		if !v.isTables() {
			lines++
		}
	}
	if path != "" && (element || lines > 0 || len(n.keys) == 0) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if element {
			b.WriteString("[[" + path + "]]\n")
		} else {
			b.WriteString("[" + path + "]\n")
		}
	}
	for _, key := range n.keys {
		if v := n.members[key]; !v.isTables() {
			b.WriteString(quoteKey(key) + " = ")
			v.inline(b)
			b.WriteByte('\n')
		}
	}
	for _, key := range n.keys {
		v, below := n.members[key], quoteKey(key)
		if path != "" {
			below = path + "." + below
		}
		switch {
		case !v.isTables():
		case v.kind == table:
			v.write(b, below, false)
		default:
			for _, item := range v.items {
				item.write(b, below, true)
			}
		}
	}
}

// inline writes a value in one line.
func (n *node) inline(b *strings.Builder) {
	switch n.kind {
	case scalar:
		b.WriteString(n.text)
	case array:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			item.inline(b)
		}
		b.WriteByte(']')
	case table:
		if len(n.keys) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{ ")
		for i, key := range n.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quoteKey(key) + " = ")
			n.members[key].inline(b)
		}
		b.WriteString(" }")
	}
}
