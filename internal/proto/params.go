package proto

import (
	"slices"
	"strconv"
	"strings"
)

// Params reads the members of a params object one by one and remembers the
// first that does not fit. Every reader returns a zero value after that, so
// that a decoder can read all and ask Err once.
type Params struct {
	v   Value
	err *Error
}

// ParamsOf starts reading params. name is the structure's name for the message
// about params that are missing altogether.
func ParamsOf(v Value, name string) *Params {
	p := &Params{v: v}
	if v.Kind != Object {
		p.fail("invalid type: %s, expected struct %s", kindName(v), name)
	}
	return p
}

// NoParams accepts what methods without parameters accept: nothing, null, {}.
func NoParams(v Value) error {
	if v.Kind == Absent || v.Kind == Null || v.Kind == Object && v.Len() == 0 {
		return nil
	}
	return BadParams("invalid type: %s, expected unit", kindName(v))
}

// Err is the first thing that was wrong, or nil.
func (p *Params) Err() error {
	if p.err == nil {
		return nil
	}
	return p.err
}

// Fail records an error of the caller's own, unless there is one already.
func (p *Params) Fail(e *Error) {
	if p.err == nil {
		p.err = e
	}
}

func (p *Params) fail(format string, args ...any) { p.Fail(BadParams(format, args...)) }

func kindName(v Value) string {
	switch v.Kind {
	case Absent, Null:
		return "null"
	case True, False:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string " + strconv.Quote(v.Str())
	case Array:
		return "sequence"
	}
	return "map"
}

// Required returns a member that has to be there; it may be null.
func (p *Params) Required(name string) Value {
	v := p.v.Get(name)
	if v.Kind == Absent {
		p.fail("missing field `%s`", name)
	}
	return v
}

// Nullable returns a member that may be missing or null, as Absent in both
// cases.
func (p *Params) Nullable(name string) Value {
	v := p.v.Get(name)
	if v.Kind == Null {
		return Value{}
	}
	return v
}

// Member returns a member that may be missing, but not null: the readers refuse
// that.
func (p *Params) Member(name string) Value { return p.v.Get(name) }

// Sub reads a member that is an object itself; nil if v is Absent.
func (p *Params) Sub(v Value, name string) *Params {
	if v.Kind == Absent {
		return nil
	}
	return &Params{v: v, err: ParamsOf(v, name).err}
}

// Join takes over the error of a Sub.
func (p *Params) Join(sub *Params) {
	if sub != nil && sub.err != nil {
		p.Fail(sub.err)
	}
}

// Text reads v as a string.
func (p *Params) Text(v Value) string {
	if v.Kind != String {
		if v.Kind != Absent {
			p.fail("invalid type: %s, expected a string", kindName(v))
		}
		return ""
	}
	return v.Str()
}

// String reads a required string.
func (p *Params) String(name string) string { return p.Text(p.Required(name)) }

// OptString reads a string that may be missing or null.
func (p *Params) OptString(name string) (s string, ok bool) {
	v := p.Nullable(name)
	return p.Text(v), v.Kind == String
}

func (p *Params) bool(v Value) bool {
	if v.Kind != True && v.Kind != False && v.Kind != Absent {
		p.fail("invalid type: %s, expected a boolean", kindName(v))
	}
	return v.Kind == True
}

// Bool reads a required boolean.
func (p *Params) Bool(name string) bool { return p.bool(p.Required(name)) }

// BoolOr reads a boolean that may be missing, but not null.
func (p *Params) BoolOr(name string, missing bool) bool {
	if v := p.v.Get(name); v.Kind != Absent {
		return p.bool(v)
	}
	return missing
}

// NullableBool reads a boolean that may be missing or null.
func (p *Params) NullableBool(name string, missing bool) bool {
	if v := p.Nullable(name); v.Kind != Absent {
		return p.bool(v)
	}
	return missing
}

func (p *Params) uint(v Value) uint64 {
	n, ok := v.Uint64()
	switch {
	case ok || v.Kind == Absent:
	case v.Kind == Number:
		p.fail("invalid number")
	default:
		p.fail("invalid type: %s, expected u64", kindName(v))
	}
	return n
}

// Uint reads a required unsigned 64-bit integer.
func (p *Params) Uint(name string) uint64 { return p.uint(p.Required(name)) }

// OptUint reads an unsigned 64-bit integer that may be missing or null.
func (p *Params) OptUint(name string) (n uint64, ok bool) {
	v := p.Nullable(name)
	return p.uint(v), v.Kind != Absent
}

// Strings reads v as a list of strings.
func (p *Params) Strings(v Value) []string {
	if v.Kind != Array {
		if v.Kind != Absent {
			p.fail("invalid type: %s, expected a sequence", kindName(v))
		}
		return nil
	}
	list := make([]string, v.Len())
	for i := range list {
		if v.At(i).Kind != String {
			p.fail("invalid type: %s, expected a string", kindName(v.At(i)))
			return nil
		}
		list[i] = v.At(i).Str()
	}
	return list
}

// Ports reads v as a list of 16-bit numbers.
func (p *Params) Ports(v Value) []uint16 {
	if v.Kind != Array {
		if v.Kind != Absent {
			p.fail("invalid type: %s, expected a sequence", kindName(v))
		}
		return nil
	}
	list := make([]uint16, v.Len())
	for i := range list {
		n, ok := v.At(i).Uint64()
		switch {
		case ok && n < 1<<16:
		case v.At(i).Kind == Number:
			p.fail("invalid number")
		default:
			p.fail("invalid type: %s, expected u16", kindName(v.At(i)))
		}
		list[i] = uint16(n)
	}
	return list
}

// Map reads v as an object of strings.
func (p *Params) Map(v Value) map[string]string {
	if v.Kind != Object {
		if v.Kind != Absent {
			p.fail("invalid type: %s, expected a map", kindName(v))
		}
		return nil
	}
	m := make(map[string]string, v.Len())
	for i := range v.Len() {
		if v.At(i).Kind != String {
			p.fail("invalid type: %s, expected a string", kindName(v.At(i)))
			return nil
		}
		m[v.Key(i)] = v.At(i).Str()
	}
	return m
}

// Variant reads v as one of some words.
func (p *Params) Variant(v Value, words ...string) string {
	s := p.Text(v)
	if v.Kind == Absent || p.err != nil {
		return s
	}
	if slices.Contains(words, s) {
		return s
	}
	list, between := "one of `", "`, `"
	if len(words) < 3 {
		list, between = "`", "` or `"
	}
	p.fail("unknown variant `%s`, expected %s", s, list+strings.Join(words, between)+"`")
	return s
}

// URI reads a required file URI.
func (p *Params) URI(name string) URI { return p.uri(p.Required(name)) }

// OptURI reads a file URI that may be missing or null.
func (p *Params) OptURI(name string) (u URI, ok bool) {
	v := p.Nullable(name)
	return p.uri(v), v.Kind == String
}

// URIs reads v as a list of file URIs.
func (p *Params) URIs(v Value) []URI {
	if v.Kind != Array {
		p.expected(v, "a sequence")
		return nil
	}
	list := make([]URI, v.Len())
	for i := range list {
		if list[i] = p.uri(v.At(i)); p.err != nil {
			return nil
		}
	}
	return list
}

// variantOr reads one of some words; the member may be missing, but not null.
func (p *Params) variantOr(name string, words ...string) string {
	if v := p.v.Get(name); v.Kind != Absent {
		return p.Variant(v, words...)
	}
	return words[0]
}

// expected says that v is of another type, unless it is missing, which has been
// said already.
func (p *Params) expected(v Value, what string) {
	if v.Kind != Absent {
		p.fail("invalid type: %s, expected %s", kindName(v), what)
	}
}

func (p *Params) uri(v Value) URI {
	s := p.Text(v)
	if v.Kind != String {
		return URI{}
	}
	u, err := ParseURI(s)
	if err != nil {
		p.fail("%s", err)
	}
	return u
}
