package provider

import (
	"reflect"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// rules are those of the members of an object, or of the objects of a list.
type rules map[string]*definition.Attribute

// complete adds what people leave out of an object: its default, or the value of the member that it follows, or null.
// What the service chooses is as it was where everything that is written was so before, else known after the change.
// Members of lists are the same ones by the key, or by what is written.
func complete(kind *definition.Kind, of rules, written, prior any, key string) any {
	if written == nil || written == value.Unknown {
		return written
	}
	switch kind.Type {
	case definition.Object:
		return completeObject(kind, of, value.ObjectOf(written), prior)
	case definition.List:
		return completeList(kind.Element, of, value.ListOf(written), value.ListOf(prior), key)
	case definition.Map:
		before := value.ObjectOf(prior)
		completed := map[string]any{}
		for name, each := range value.ObjectOf(written) {
			completed[name] = complete(kind.Element, of, each, before[name], "")
		}
		return completed
	}
	return written
}

func completeObject(kind *definition.Kind, of rules, written map[string]any, prior any) map[string]any {
	before, wasThere := prior.(map[string]any)
	isAsBefore := wasThere && agrees(written, before)
	completed := map[string]any{}
	for name, member := range kind.Members {
		rule := of[name]
		if rule == nil {
			rule = &definition.Attribute{}
		}
		switch {
		case written[name] != nil:
			completed[name] = complete(member.Kind, rule.Of, written[name], before[name], "")
		case member.HasDefault:
			completed[name] = member.Default
		case rule.IsFilled:
			completed[name] = complete(member.Kind, rule.Of, map[string]any{}, nil, "")
		case rule.Follows != "":
			completed[name] = written[rule.Follows]
		case !rule.IsChosen:
			completed[name] = nil
		case isAsBefore:
			completed[name] = before[name]
		default:
			completed[name] = value.Unknown
		}
	}
	return completed
}

func completeList(kind *definition.Kind, of rules, written, prior []any, key string) []any {
	left := append([]any{}, prior...)
	completed := make([]any, len(written))
	for index, each := range written {
		at := memberAt(left, each, index, key)
		var before any
		if at >= 0 {
			before = left[at]
			left[at] = nil
		}
		completed[index] = complete(kind, of, each, before, "")
	}
	return completed
}

// memberAt finds the member that was the same one; -1 when there was none.
func memberAt(prior []any, written any, index int, key string) int {
	object, isObject := written.(map[string]any)
	if !isObject {
		return -1
	}
	isSame := func(at int) bool {
		before, wasThere := prior[at].(map[string]any)
		if !wasThere {
			return false
		}
		if key != "" {
			return before[key] == object[key]
		}
		return agrees(object, before)
	}
	if index < len(prior) && isSame(index) {
		return index
	}
	for at := range prior {
		if isSame(at) {
			return at
		}
	}
	return -1
}

// agrees is true when everything that is written is in the other as well.
func agrees(written, other any) bool {
	switch written := written.(type) {
	case nil:
		return true
	case map[string]any:
		object, isObject := other.(map[string]any)
		if !isObject {
			return false
		}
		for name, each := range written {
			if !agrees(each, object[name]) {
				return false
			}
		}
		return true
	case []any:
		list, isList := other.([]any)
		if !isList || len(list) != len(written) {
			return false
		}
		for index, each := range written {
			if !agrees(each, list[index]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(written, other)
}
