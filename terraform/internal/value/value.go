// Package value has values as JSON has them (nil, string, float64, bool, []any, map[string]any), and one that is not
// known yet.
package value

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

type unknown struct{}

// Unknown is a value that is known after a change only.
var Unknown any = unknown{}

// IsKnown is true when no part of the value is unknown.
func IsKnown(v any) bool {
	switch v := v.(type) {
	case unknown:
		return false
	case []any:
		for _, each := range v {
			if !IsKnown(each) {
				return false
			}
		}
	case map[string]any:
		for _, each := range v {
			if !IsKnown(each) {
				return false
			}
		}
	}
	return true
}

// Settled is the value with null wherever it is unknown.
func Settled(v any) any {
	switch v := v.(type) {
	case unknown:
		return nil
	case []any:
		list := make([]any, len(v))
		for index, each := range v {
			list[index] = Settled(each)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, each := range v {
			object[name] = Settled(each)
		}
		return object
	}
	return v
}

// Said is the value without members that are null or unknown, as bodies of requests have it.
func Said(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for index, each := range v {
			list[index] = Said(each)
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, each := range v {
			if each != nil && each != Unknown {
				object[name] = Said(each)
			}
		}
		return object
	}
	return v
}

// ObjectOf is the value as an object; empty when it is none.
func ObjectOf(v any) map[string]any {
	if object, isObject := v.(map[string]any); isObject {
		return object
	}
	return map[string]any{}
}

// ListOf is the value as a list; empty when it is none.
func ListOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// FromTerraform reads a value of the protocol.
func FromTerraform(v tftypes.Value) (any, error) {
	if !v.IsKnown() {
		return Unknown, nil
	}
	if v.IsNull() {
		return nil, nil
	}
	switch {
	case v.Type().Is(tftypes.String):
		var text string
		err := v.As(&text)
		return text, err
	case v.Type().Is(tftypes.Bool):
		var truth bool
		err := v.As(&truth)
		return truth, err
	case v.Type().Is(tftypes.Number):
		number := new(big.Float)
		if err := v.As(&number); err != nil {
			return nil, err
		}
		float, _ := number.Float64()
		return float, nil
	case v.Type().Is(tftypes.List{}), v.Type().Is(tftypes.Set{}), v.Type().Is(tftypes.Tuple{}):
		var items []tftypes.Value
		if err := v.As(&items); err != nil {
			return nil, err
		}
		list := make([]any, len(items))
		for index, item := range items {
			each, err := FromTerraform(item)
			if err != nil {
				return nil, err
			}
			list[index] = each
		}
		return list, nil
	}
	var members map[string]tftypes.Value
	if err := v.As(&members); err != nil {
		return nil, err
	}
	object := make(map[string]any, len(members))
	for name, member := range members {
		each, err := FromTerraform(member)
		if err != nil {
			return nil, err
		}
		object[name] = each
	}
	return object, nil
}

// ToTerraform makes a value of the protocol of this type.
func ToTerraform(v any, kind tftypes.Type) (tftypes.Value, error) {
	if v == Unknown {
		return tftypes.NewValue(kind, tftypes.UnknownValue), nil
	}
	if v == nil {
		return tftypes.NewValue(kind, nil), nil
	}
	switch kind := kind.(type) {
	case tftypes.List:
		return listToTerraform(v, kind)
	case tftypes.Map:
		return mapToTerraform(v, kind)
	case tftypes.Object:
		return objectToTerraform(v, kind)
	}
	if number, isNumber := v.(float64); isNumber {
		v = new(big.Float).SetFloat64(number)
	}
	if err := tftypes.ValidateValue(kind, v); err != nil {
		return tftypes.Value{}, err
	}
	return tftypes.NewValue(kind, v), nil
}

func listToTerraform(v any, kind tftypes.List) (tftypes.Value, error) {
	list, isList := v.([]any)
	if !isList {
		return tftypes.Value{}, fmt.Errorf("%T is no list", v)
	}
	items := make([]tftypes.Value, len(list))
	for index, each := range list {
		item, err := ToTerraform(each, kind.ElementType)
		if err != nil {
			return tftypes.Value{}, err
		}
		items[index] = item
	}
	return tftypes.NewValue(kind, items), nil
}

func mapToTerraform(v any, kind tftypes.Map) (tftypes.Value, error) {
	object, isObject := v.(map[string]any)
	if !isObject {
		return tftypes.Value{}, fmt.Errorf("%T is no map", v)
	}
	members := make(map[string]tftypes.Value, len(object))
	for name, each := range object {
		member, err := ToTerraform(each, kind.ElementType)
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		members[name] = member
	}
	return tftypes.NewValue(kind, members), nil
}

func objectToTerraform(v any, kind tftypes.Object) (tftypes.Value, error) {
	object, isObject := v.(map[string]any)
	if !isObject {
		return tftypes.Value{}, fmt.Errorf("%T is no object", v)
	}
	members := make(map[string]tftypes.Value, len(kind.AttributeTypes))
	for name, attribute := range kind.AttributeTypes {
		member, err := ToTerraform(object[name], attribute)
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		members[name] = member
	}
	return tftypes.NewValue(kind, members), nil
}
