package codexhome

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads a document as a tree. Aliases are not expanded, so that a small
// document stays small; only what is asked for is looked at.
func parseYAML(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("it is empty")
	}
	n := resolve(doc.Content[0])
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	return n, checkKeys(n)
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for range 100 {
		if n == nil || n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

func checkKeys(n *yaml.Node) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if seen[key] {
			return fmt.Errorf("duplicate entry with key %q", key)
		}
		seen[key] = true
	}
	return nil
}

// reader reads members of mappings and remembers the first that does not fit.
type reader struct{ err error }

func (r *reader) fail(key, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: invalid type, expected %s", key, want)
	}
}

// member is a member of a mapping, or nil if there is none or it is null.
func (r *reader) member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			continue
		}
		v := resolve(n.Content[i+1])
		if v != nil && v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
			return nil
		}
		return v
	}
	return nil
}

// str reads a scalar as the text that it is written as, whatever its type.
func (r *reader) str(n *yaml.Node, key string) (string, bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			continue
		}
		v := resolve(n.Content[i+1])
		if v == nil || v.Kind != yaml.ScalarNode {
			r.fail(key, "a string")
			return "", false
		}
		return v.Value, true
	}
	return "", false
}

func (r *reader) table(n *yaml.Node, key string) *yaml.Node {
	v := r.member(n, key)
	if v == nil {
		return nil
	}
	if v.Kind != yaml.MappingNode {
		r.fail(key, "a map")
		return nil
	}
	if err := checkKeys(v); err != nil && r.err == nil {
		r.err = err
	}
	return v
}

func (r *reader) list(n *yaml.Node, key string) []*yaml.Node {
	v := r.member(n, key)
	if v == nil {
		return nil
	}
	if v.Kind != yaml.SequenceNode {
		r.fail(key, "a sequence")
		return nil
	}
	return v.Content
}

func (r *reader) boolean(n *yaml.Node, key string) *bool {
	v := r.member(n, key)
	if v == nil {
		return nil
	}
	var b bool
	if v.Kind != yaml.ScalarNode || v.Tag != "!!bool" || v.Decode(&b) != nil {
		r.fail(key, "a boolean")
		return nil
	}
	return &b
}
