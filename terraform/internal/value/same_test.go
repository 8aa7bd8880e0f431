package value

import "testing"

func TestSame(t *testing.T) {
	list := func(each ...any) []any { return each }
	for _, each := range []struct {
		name       string
		spelling   Spelling
		one, other any
		isSame     bool
	}{
		{"equal texts", Spelling{}, "a", "a", true},
		{"other texts", Spelling{}, "a", "a ", false},
		{"space around", Spelling{Equal: "trimmed"}, "key\n", "key", true},
		{"an address", Spelling{Equal: "address"}, "fd00::0:1", "fd00::1", true},
		{"a network", Spelling{Equal: "cidr"}, "10.0.0.7/24", "10.0.0.0/24", true},
		{"an address as a network", Spelling{Equal: "cidr"}, "203.0.113.7", "203.0.113.7/32", true},
		{"an address of IPv6 as a network", Spelling{Equal: "cidr"}, "fd00::0:1", "fd00::1/128", true},
		{"an address is no wider network", Spelling{Equal: "cidr"}, "203.0.113.7", "203.0.113.7/24", false},
		{"another network", Spelling{Equal: "cidr"}, "10.0.1.0/24", "10.0.0.0/24", false},
		{"a time table", Spelling{Equal: "cron"}, "30  3 * * *", "30 3 * * *", true},
		{"an order that counts", Spelling{}, list("a", "b"), list("b", "a"), false},
		{"an order that does not", Spelling{IsSet: true}, list("a", "b"), list("b", "a"), true},
		{"twice is not once", Spelling{IsSet: true}, list("a", "a"), list("a", "b"), false},
		{"nothing is not an empty list", Spelling{IsSet: true}, nil, list(), false},
	} {
		t.Run(each.name, func(t *testing.T) {
			if each.spelling.Same(each.one, each.other) != each.isSame {
				t.Errorf("%v and %v", each.one, each.other)
			}
		})
	}
}

func TestSaidHasNoNulls(t *testing.T) {
	said := Said(map[string]any{"a": nil, "b": Unknown, "c": []any{map[string]any{"d": nil, "e": 1.0}}})
	if !(Spelling{}).Same(said, map[string]any{"c": []any{map[string]any{"e": 1.0}}}) {
		t.Errorf("%v", said)
	}
}
