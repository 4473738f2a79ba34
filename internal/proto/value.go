package proto

import (
	"bytes"
	"strconv"
)

// Kind is the JSON type of a Value.
type Kind uint8

// Kinds of values. Absent is what a look-up of a missing member gives.
const (
	Absent Kind = iota
	Null
	True
	False
	Number
	String
	Array
	Object
)

// Value is a parsed JSON value. It points into the message that it was parsed
// from and is valid as long as that is.
type Value struct {
	Kind    Kind
	escaped bool
	text    []byte // a number's text, or a string's between its quotes
	keys    []Value
	items   []Value // of an array, or beside keys
}

// Get returns the member of an object with that name, or an Absent value.
func (v Value) Get(name string) Value {
	for i, k := range v.keys {
		if k.escaped {
			if k.Str() == name {
				return v.items[i]
			}
		} else if string(k.text) == name {
			return v.items[i]
		}
	}
	return Value{}
}

// Len is the number of an array's items or of an object's members.
func (v Value) Len() int { return len(v.items) }

// At returns item i of an array, or the value of member i.
func (v Value) At(i int) Value { return v.items[i] }

// Key returns the name of member i.
func (v Value) Key(i int) string { return v.keys[i].Str() }

// Raw is the text of a number, or of a string between its quotes, escapes and
// all.
func (v Value) Raw() []byte { return v.text }

// Bytes is a string's contents, without a copy where it has no escapes.
func (v Value) Bytes() []byte {
	if !v.escaped {
		return v.text
	}
	return unescape(v.text)
}

// Str is a string's contents.
func (v Value) Str() string { return string(v.Bytes()) }

// Int64 reads a number as a signed 64-bit integer.
func (v Value) Int64() (int64, bool) {
	n, err := strconv.ParseInt(string(v.text), 10, 64)
	return n, err == nil && v.Kind == Number
}

// Uint64 reads a number as an unsigned 64-bit integer.
func (v Value) Uint64() (uint64, bool) {
	n, err := strconv.ParseUint(string(v.text), 10, 64)
	return n, err == nil && v.Kind == Number
}

// AppendJSON appends the value as JSON text, without spaces; nothing if it is
// Absent.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case Null:
		return append(b, "null"...)
	case True, False:
		return AppendBool(b, v.Kind == True)
	case Number:
		return append(b, v.text...)
	case String:
		return append(append(append(b, '"'), v.text...), '"')
	case Array:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.AppendJSON(b)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.AppendJSON(append(v.keys[i].AppendJSON(b), ':'))
		}
		return append(b, '}')
	}
	return b
}

// Clone returns a scalar that does not point into the message any more.
func (v Value) Clone() Value {
	v.text = bytes.Clone(v.text)
	return v
}
