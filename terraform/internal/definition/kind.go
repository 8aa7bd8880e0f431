package definition

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Types of kinds.
const (
	String = "string"
	Number = "number"
	Bool   = "bool"
	List   = "list"
	Map    = "map"
	Object = "object"
)

// Kind is what a value may be.
type Kind struct {
	Type string
	// Of lists and maps.
	Element *Kind
	// Of objects.
	Members     map[string]*Member
	Description string
	Default     any
	HasDefault  bool
	Values      []any
	Minimum     *float64
	Maximum     *float64
	Shortest    *int
	Longest     *int
	Pattern     string
}

// Member is a field of an object.
type Member struct {
	*Kind
	IsRequired bool
}

type schema struct {
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	Type        any                `json:"type"`
	AnyOf       []*schema          `json:"anyOf"`
	OneOf       []*schema          `json:"oneOf"`
	AllOf       []*schema          `json:"allOf"`
	Const       any                `json:"const"`
	Enum        []any              `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	Description string             `json:"description"`
	Default     json.RawMessage    `json:"default"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	MinLength   *int               `json:"minLength"`
	MaxLength   *int               `json:"maxLength"`
	MinItems    *int               `json:"minItems"`
	MaxItems    *int               `json:"maxItems"`
	Pattern     string             `json:"pattern"`
}

// ParseKind reads a JSON schema; null is no kind, because every value may be left out.
func ParseKind(text json.RawMessage) (*Kind, error) {
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	return kindOf(&root, root.Defs)
}

// isSwitch is true for the texts by which parameters in addresses say a boolean.
func (k *Kind) isSwitch() bool {
	if k.Type != String || len(k.Values) != 2 {
		return false
	}
	isTrue, isFalse := false, false
	for _, each := range k.Values {
		isTrue, isFalse = isTrue || each == "true", isFalse || each == "false"
	}
	return isTrue && isFalse
}

func kindOf(s *schema, defs map[string]*schema) (*Kind, error) {
	kind, err := bareKind(s, defs)
	if err != nil {
		return nil, err
	}
	if s.Description != "" {
		kind.Description = s.Description
	}
	if len(s.Default) > 0 && string(s.Default) != "null" {
		if err := json.Unmarshal(s.Default, &kind.Default); err != nil {
			return nil, err
		}
		kind.HasDefault = true
	}
	return kind, nil
}

func bareKind(s *schema, defs map[string]*schema) (*Kind, error) {
	if s.Ref != "" {
		target := defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if target == nil {
			return nil, fmt.Errorf("%s leads nowhere", s.Ref)
		}
		return kindOf(target, defs)
	}
	if choices := append(append([]*schema{}, s.AnyOf...), s.OneOf...); len(choices) > 0 {
		return choiceOf(choices, defs)
	}
	switch typeOf(s) {
	case "string":
		return &Kind{Type: String, Values: s.Enum, Shortest: s.MinLength, Longest: s.MaxLength, Pattern: s.Pattern}, nil
	case "integer", "number":
		return &Kind{Type: Number, Values: s.Enum, Minimum: s.Minimum, Maximum: s.Maximum}, nil
	case "boolean":
		return &Kind{Type: Bool}, nil
	case "array":
		if s.Items == nil {
			return nil, fmt.Errorf("a list of nothing")
		}
		element, err := kindOf(s.Items, defs)
		if err != nil {
			return nil, err
		}
		return &Kind{Type: List, Element: element, Shortest: s.MinItems, Longest: s.MaxItems}, nil
	case "object":
		return objectOf(s, defs)
	}
	return nil, fmt.Errorf("there is no kind for %v", s.Type)
}

// typeOf answers the type that is not null.
func typeOf(s *schema) string {
	switch name := s.Type.(type) {
	case string:
		return name
	case []any:
		for _, each := range name {
			if text, isText := each.(string); isText && text != "null" {
				return text
			}
		}
	}
	values := s.Enum
	if s.Const != nil {
		values = []any{s.Const}
	}
	for _, value := range values {
		switch value.(type) {
		case string:
			return "string"
		case float64:
			return "number"
		case bool:
			return "boolean"
		}
	}
	return ""
}

func objectOf(s *schema, defs map[string]*schema) (*Kind, error) {
	if len(s.Properties) == 0 {
		var values schema
		if err := json.Unmarshal(s.Additional, &values); err != nil || typeOf(&values) == "" && values.Ref == "" {
			return nil, fmt.Errorf("an object without members")
		}
		element, err := kindOf(&values, defs)
		if err != nil {
			return nil, err
		}
		return &Kind{Type: Map, Element: element}, nil
	}
	members := map[string]*Member{}
	for name, property := range s.Properties {
		kind, err := kindOf(property, defs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		members[name] = &Member{Kind: kind}
	}
	for _, name := range s.Required {
		if member := members[name]; member != nil {
			member.IsRequired = true
		}
	}
	return &Kind{Type: Object, Members: members}, nil
}

// choiceOf joins the members of objects of which one is chosen; none of them is required then.
func choiceOf(choices []*schema, defs map[string]*schema) (*Kind, error) {
	var joined *Kind
	for _, choice := range choices {
		if choice.Type == "null" {
			continue
		}
		kind, err := kindOf(choice, defs)
		if err != nil {
			return nil, err
		}
		switch {
		case joined == nil:
			joined = kind
		case joined.Type == Object && kind.Type == Object:
			joined = join(joined, kind)
		case joined.Type == kind.Type && joined.Element == nil:
			joined = &Kind{Type: joined.Type, Description: joined.Description}
		default:
			return nil, fmt.Errorf("a value is %s or %s", joined.Type, kind.Type)
		}
	}
	if joined == nil {
		return nil, fmt.Errorf("a value is always null")
	}
	return joined, nil
}

func join(one, other *Kind) *Kind {
	members := map[string]*Member{}
	for _, kind := range []*Kind{one, other} {
		for name, member := range kind.Members {
			bare := *member.Kind
			if _, isThere := members[name]; isThere {
				bare.Values = nil
			}
			members[name] = &Member{Kind: &bare}
		}
	}
	return &Kind{Type: Object, Members: members, Description: one.Description}
}
