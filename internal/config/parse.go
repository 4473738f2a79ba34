package config

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// parse decodes and checks a file over the defaults. Its errors are one line
// and begin with "line:column: " where the place is known, else with " ".
func parse(data []byte) (Config, error) {
	c, err := parseOver(Default(), data)
	if err != nil {
		// Quoted keys may hold anything.
		return Config{}, errors.New(strings.ReplaceAll(err.Error(), "\n", `\n`))
	}
	return c, nil
}

func parseOver(c Config, data []byte) (Config, error) {
	builtin := c.Profiles[DefaultProfile]
	index := indexKeys(data)
	// A profile's table is decoded over what its map entry holds, so the entry
	// has to be there first.
	for _, name := range index.children("profile") {
		p := builtin
		p.Env = map[string]string{}
		c.Profiles[name] = p
	}
	if err := decode(data, &c); err != nil {
		return Config{}, explain(index, err)
	}
	if problem := c.validate(index); problem != nil {
		return Config{}, index.locate(problem)
	}
	c.Root = path.Clean(c.Root)
	return c, nil
}

func decode(data []byte, c *Config) error {
	d := toml.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(c)
}

// explain turns the decoder's error into one line with place and key.
func explain(index keyIndex, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		first := strict.Errors[0]
		line, column := first.Position()
		key := index.partsAt(line, column, first.Key())
		return fmt.Errorf("%d:%d: %s: %s", line, column, strings.Join(key, "."), unknownKey(key))
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		text := strings.TrimPrefix(bad.Error(), "toml: ")
		if what, wanted, ok := strings.Cut(text, " into "); ok {
			text = what + " into a " + typeName(wanted)
		}
		if key := index.partsAt(line, column, bad.Key()); len(key) > 0 {
			text = strings.Join(key, ".") + ": " + text
		}
		return fmt.Errorf("%d:%d: %s", line, column, text)
	}
	// The decoder does not place errors of UnmarshalText for values that are no
	// strings: the key is the last one of the shortest file that fails.
	for i, k := range index.keys {
		var scratch Config
		var placed *toml.DecodeError
		if perr := decode(index.upTo(i), &scratch); perr != nil && !errors.As(perr, &placed) {
			return fmt.Errorf("%d:%d: %s: %w", k.line, k.column, k, err)
		}
	}
	return fmt.Errorf(" %w", err)
}

// typeName says in words what "struct field config.Profile.CPUs of type float64"
// or just "string" wants.
func typeName(wanted string) string {
	switch wanted[strings.LastIndexByte(wanted, ' ')+1:] {
	case "units.Size":
		return "size"
	case "units.Duration":
		return "duration"
	case "bool":
		return "boolean"
	case "float64":
		return "number"
	case "int", "int64":
		return "whole number"
	case "string":
		return "string"
	case "[]string":
		return `list of strings; write it in brackets, as in ["text"]`
	case "[]config.Ports":
		return "list of ports; write it in brackets, as in [443]"
	}
	return "table"
}
