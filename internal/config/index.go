package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// keyIndex knows where the keys and tables of a file stand, in their order.
type keyIndex struct {
	data []byte
	keys []keyPlace
	// lists counts the elements so far of lists of tables, by the list's key.
	lists map[string]int
}

type keyPlace struct {
	parts                []string
	line, column, offset int
	// element is in which element of a list of tables it is, from 0.
	element int
}

func (k keyPlace) String() string { return strings.Join(k.parts, ".") }

// indexKeys stops at a syntax error, which the decoder reports.
func indexKeys(data []byte) keyIndex {
	index := keyIndex{data: data, lists: map[string]int{}}
	var parser unstable.Parser
	parser.Reset(data)
	var table []string
	for parser.NextExpression() {
		node := parser.Expression()
		switch node.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = index.add(&parser, nil, node)
		case unstable.KeyValue:
			index.add(&parser, table, node)
		}
	}
	return index
}

// add records node's key, and those of an inline table in it, below prefix. It
// returns the full key.
func (x *keyIndex) add(p *unstable.Parser, prefix []string, node *unstable.Node) []string {
	place := keyPlace{parts: slices.Clone(prefix)}
	for it := node.Key(); it.Next(); {
		if place.line == 0 {
			start := p.Shape(it.Node().Raw).Start
			place.line, place.column, place.offset = start.Line, start.Column, start.Offset
		}
		place.parts = append(place.parts, string(it.Node().Data))
	}
	if node.Kind == unstable.ArrayTable {
		x.lists[place.String()]++
	}
	for i := range place.parts {
		place.element = max(place.element, x.lists[strings.Join(place.parts[:i+1], ".")]-1)
	}
	x.keys = append(x.keys, place)
	if node.Kind == unstable.KeyValue {
		x.addValue(p, place, node.Value())
	}
	return place.parts
}

// addValue records the keys of an inline table, or of a list of them.
func (x *keyIndex) addValue(p *unstable.Parser, place keyPlace, value *unstable.Node) {
	for it := value.Children(); it.Next(); {
		switch {
		case value.Kind == unstable.InlineTable:
			x.add(p, place.parts, it.Node())
		case value.Kind == unstable.Array && it.Node().Kind == unstable.InlineTable:
			x.lists[place.String()]++
			x.addValue(p, place, it.Node())
		}
	}
}

// children are the distinct names right below a top-level table.
func (x keyIndex) children(table string) []string {
	var names []string
	for _, k := range x.keys {
		if len(k.parts) > 1 && strings.EqualFold(k.parts[0], table) && !slices.Contains(names, k.parts[1]) {
			names = append(names, k.parts[1])
		}
	}
	return names
}

// upTo is the file up to and with the lines of key i.
func (x keyIndex) upTo(i int) []byte {
	if i+1 == len(x.keys) {
		return x.data
	}
	return x.data[:bytes.LastIndexByte(x.data[:x.keys[i+1].offset], '\n')+1]
}

// partsAt is the full key at a place; the decoder's own word for it lacks what is
// outside an inline table.
func (x keyIndex) partsAt(line, column int, parts []string) []string {
	for _, k := range x.keys {
		if k.line == line && k.column == column {
			return k.parts
		}
	}
	return parts
}

// locate makes the error of a bad value; a key that is not in the file has no
// place.
func (x keyIndex) locate(b *problem) error {
	for _, k := range x.keys {
		if k.element == b.element && strings.EqualFold(k.String(), b.key) {
			return fmt.Errorf("%d:%d: %s: %s", k.line, k.column, b.key, b.text)
		}
	}
	for _, k := range x.keys { // what it lacks is said where it begins
		if k.element == b.element && strings.HasPrefix(strings.ToLower(k.String()), strings.ToLower(b.key)+".") {
			return fmt.Errorf("%d:%d: %s: %s", k.line, k.column, b.key, b.text)
		}
	}
	return fmt.Errorf(" %s: %s", b.key, b.text)
}
