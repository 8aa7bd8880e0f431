package value

import (
	"net/netip"
	"reflect"
	"strings"
)

// Spelling says how two values are the same.
type Spelling struct {
	// "trimmed", "address", "cidr", "cron", or empty.
	Equal string
	// The order of members means nothing.
	IsSet bool
	// Of members of objects, also of those in lists.
	Of map[string]Spelling
}

// Same is true when both mean the same.
func (s Spelling) Same(one, other any) bool {
	left, right := s.canonical(one), s.canonical(other)
	if !s.IsSet {
		return reflect.DeepEqual(left, right)
	}
	mine, others := ListOf(left), append([]any{}, ListOf(right)...)
	if (left == nil) != (right == nil) || len(mine) != len(others) {
		return false
	}
	for _, each := range mine {
		at := indexOf(others, each)
		if at < 0 {
			return false
		}
		others = append(others[:at], others[at+1:]...)
	}
	return true
}

func indexOf(list []any, wanted any) int {
	for index, each := range list {
		if reflect.DeepEqual(each, wanted) {
			return index
		}
	}
	return -1
}

func (s Spelling) canonical(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		list := make([]any, len(v))
		for index, each := range v {
			list[index] = s.canonical(each)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, each := range v {
			object[name] = s.of(name).canonical(each)
		}
		return object
	}
	return v
}

func (s Spelling) of(name string) Spelling {
	if member, isThere := s.Of[name]; isThere {
		return member
	}
	return Spelling{Equal: s.Equal}
}

func (s Spelling) text(text string) string {
	switch s.Equal {
	case "trimmed":
		return strings.TrimSpace(text)
	case "cron":
		return strings.Join(strings.Fields(text), " ")
	case "address":
		if address, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			return address.String()
		}
	case "cidr":
		if prefix, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			return prefix.Masked().String()
		}
		if address, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			return netip.PrefixFrom(address, address.BitLen()).String()
		}
	}
	return text
}
