package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unknownKey says that there is no such key, and which was meant, if that can be
// told. The parts are those of the key, from the top.
func unknownKey(parts []string) string {
	const text = "there is no such key"
	if len(parts) == 3 && parts[0] == "environment" && parts[2] == "url" {
		return text + "; it is remote here"
	}
	if len(parts) == 0 {
		return text
	}
	last := strings.ToLower(parts[len(parts)-1])
	var near []string
	for _, key := range keysOf(parts[:len(parts)-1]) {
		if len(last) > 2 && strings.HasPrefix(key, last) || distance(last, key) <= min(2, len(last)/3) {
			near = append(near, key)
		}
	}
	if len(near) == 0 {
		return text
	}
	return text + "; did you mean " + strings.Join(near, " or ") + "?"
}

// keysOf are the keys of a table, by name; none if it is none.
func keysOf(table []string) []string {
	t := reflect.TypeFor[Config]()
	for _, part := range table {
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			t = fieldsOf(t)[part]
		default:
			return nil
		}
		for t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer) {
			t = t.Elem()
		}
		if t == nil {
			return nil
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return slices.Sorted(maps.Keys(fieldsOf(t)))
}

// fieldsOf are the types of a table's keys.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("toml"); key != "" {
			fields[key] = f.Type
		}
	}
	return fields
}

// distance is how many letters have to be put in, left out or exchanged to make one
// word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
