package codexhome

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Dependencies are what a skill needs.
type Dependencies struct {
	Tools []Tool `json:"tools"`
}

// Tool is one thing that a skill needs.
type Tool struct {
	Type              string  `json:"type"`
	Value             string  `json:"value"`
	Description       *string `json:"description"`
	Transport         *string `json:"transport"`
	Command           *string `json:"command"`
	URL               *string `json:"url"`
	OAuthCallbackPort *uint16 `json:"oauthCallbackPort"`
}

// Policy is for whom a skill is.
type Policy struct {
	AllowImplicitInvocation *bool    `json:"allowImplicitInvocation"`
	Products                []string `json:"products"`
}

const (
	maxShort = 64   // characters of a tool's type and transport
	maxLong  = 1024 // characters of its other texts
)

// parseMetadata reads an agents/openai.yaml. One that cannot be read says
// nothing.
func parseMetadata(text string) (*Dependencies, *Policy) {
	doc, err := parseYAML(text)
	if err != nil {
		return nil, nil
	}
	r := &reader{}
	deps, policy := dependencies(r, doc), policyOf(r, doc)
	if r.err != nil {
		return nil, nil
	}
	return deps, policy
}

func dependencies(r *reader, doc *yaml.Node) *Dependencies {
	n := r.table(doc, "dependencies")
	if n == nil {
		return nil
	}
	var tools []Tool
	for _, item := range r.list(n, "tools") {
		item = resolve(item)
		if item == nil || item.Kind != yaml.MappingNode {
			r.fail("tools", "a map")
			return nil
		}
		if t, ok := tool(r, item); ok {
			tools = append(tools, t)
		}
	}
	if len(tools) == 0 {
		return nil
	}
	return &Dependencies{tools}
}

// tool reads a tool. One without a type or a value is left out.
func tool(r *reader, n *yaml.Node) (t Tool, ok bool) {
	text := func(key string, limit int) *string {
		if r.member(n, key) == nil {
			return nil
		}
		s, _ := r.str(n, key)
		if s = oneLine(s); s == "" || utf8.RuneCountInString(s) > limit {
			return nil
		}
		return &s
	}
	kind, value := text("type", maxShort), text("value", maxLong)
	t.Description, t.Transport = text("description", maxLong), text("transport", maxShort)
	t.Command, t.URL = text("command", maxLong), text("url", maxLong)
	if oauth := r.table(n, "oauth"); oauth != nil && r.member(oauth, "callback_port") != nil {
		s, _ := r.str(oauth, "callback_port")
		if port, err := strconv.ParseUint(s, 10, 16); err == nil {
			p := uint16(port)
			t.OAuthCallbackPort = &p
		} else {
			r.fail("callback_port", "u16")
		}
	}
	if kind == nil || value == nil {
		return t, false
	}
	t.Type, t.Value = *kind, *value
	return t, true
}

func policyOf(r *reader, doc *yaml.Node) *Policy {
	n := r.table(doc, "policy")
	if n == nil {
		return nil
	}
	p := &Policy{AllowImplicitInvocation: r.boolean(n, "allow_implicit_invocation"), Products: []string{}}
	for _, item := range r.list(n, "products") {
		item = resolve(item)
		if item == nil || item.Kind != yaml.ScalarNode {
			r.fail("products", "a string")
			return nil
		}
		switch product := strings.ToLower(item.Value); product {
		case "chatgpt", "codex", "atlas":
			p.Products = append(p.Products, product)
		default:
			r.fail("products", "`chatgpt`, `codex` or `atlas`")
			return nil
		}
	}
	return p
}
