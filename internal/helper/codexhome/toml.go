package codexhome

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxNesting bounds arrays and tables inside each other; the reference has 80.
const maxNesting = 80

// node is a value of a TOML document: a table, which keeps the order of its keys,
// an array, or a scalar, which is TOML text.
type node struct {
	kind    kind
	text    string
	items   []*node // of an array
	keys    []string
	members map[string]*node
}

type kind uint8

const (
	scalar kind = iota
	array
	table
)

func newTable() *node { return &node{kind: table, members: map[string]*node{}} }

func (n *node) get(key string) *node {
	if n == nil || n.kind != table {
		return nil
	}
	return n.members[key]
}

func (n *node) set(key string, v *node) {
	if n.members[key] == nil {
		n.keys = append(n.keys, key)
	}
	n.members[key] = v
}

// str is the value of a scalar that is a string.
func (n *node) str() (string, bool) {
	if n == nil || n.kind != scalar {
		return "", false
	}
	var v struct{ V any }
	if toml.Unmarshal([]byte("V = "+n.text+"\n"), &v) != nil {
		return "", false
	}
	s, ok := v.V.(string)
	return s, ok
}

// parseTOML reads a document. The error begins with LINE:COLUMN.
func parseTOML(data []byte) (*node, error) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, errors.New("1:1: invalid utf-8")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if err := checkNesting(data); err != nil {
		return nil, err
	}
	// The decoder knows which keys may not be repeated, and the parser below it
	// their order.
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := e.Position()
			return nil, fmt.Errorf("%d:%d: %s", row, column, strings.TrimPrefix(e.Error(), "toml: "))
		}
		return nil, fmt.Errorf("1:1: %s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	p := unstable.Parser{}
	p.Reset(data)
	root := newTable()
	at := root
	for p.NextExpression() {
		e := p.Expression()
		path := keyOf(e.Key())
		var err error
		switch e.Kind {
		case unstable.Table:
			at, err = root.descend(path)
		case unstable.ArrayTable:
			at, err = root.element(path)
		case unstable.KeyValue:
			err = at.assign(path, e.Value())
		}
		if err != nil {
			return nil, err
		}
	}
	return root, p.Error()
}

// checkNesting refuses what would make the decoder recurse deeply. Brackets in
// strings and comments count too, if there are that many in a line's worth of
// nesting; no configuration has them.
func checkNesting(data []byte) error {
	depth, line, start := 0, 1, 0
	for i, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("%d:%d: cannot recurse further; max recursion depth met", line, i-start+1)
			}
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			line, start = line+1, i+1
		}
	}
	return nil
}

func keyOf(it unstable.Iterator) (path []string) {
	for it.Next() {
		path = append(path, string(it.Node().Data))
	}
	return path
}

var errShape = errors.New("1:1: a key is used in two ways")

// descend returns the table at a path, and makes those that are not there. Of an
// array of tables it is the last.
func (n *node) descend(path []string) (*node, error) {
	if len(path) > maxNesting {
		return nil, errShape
	}
	for _, key := range path {
		next := n.members[key]
		if next == nil {
			next = newTable()
			n.set(key, next)
		}
		if next.kind == array && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if next.kind != table {
			return nil, errShape
		}
		n = next
	}
	return n, nil
}

// element appends a table to the array at a path.
func (n *node) element(path []string) (*node, error) {
	last := len(path) - 1
	n, err := n.descend(path[:last])
	if err != nil {
		return nil, err
	}
	list := n.members[path[last]]
	if list == nil {
		list = &node{kind: array}
		n.set(path[last], list)
	}
	if list.kind != array {
		return nil, errShape
	}
	list.items = append(list.items, newTable())
	return list.items[len(list.items)-1], nil
}

func (n *node) assign(path []string, v *unstable.Node) error {
	last := len(path) - 1
	n, err := n.descend(path[:last])
	if err != nil {
		return err
	}
	value, err := valueOf(v)
	if err == nil {
		n.set(path[last], value)
	}
	return err
}

func valueOf(v *unstable.Node) (*node, error) {
	switch v.Kind {
	case unstable.Array:
		list := &node{kind: array}
		for it := v.Children(); it.Next(); {
			item, err := valueOf(it.Node())
			if err != nil {
				return nil, err
			}
			list.items = append(list.items, item)
		}
		return list, nil
	case unstable.InlineTable:
		t := newTable()
		for it := v.Children(); it.Next(); {
			if err := t.assign(keyOf(it.Node().Key()), it.Node().Value()); err != nil {
				return nil, err
			}
		}
		return t, nil
	}
	text, err := scalarText(v)
	return &node{text: text}, err
}
