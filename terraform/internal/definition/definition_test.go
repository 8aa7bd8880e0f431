package definition

import (
	"fmt"
	"testing"
)

func TestANounWithAnotherRuleIsLeftOut(t *testing.T) {
	const noun = `{"format":%d,"nouns":[{"noun":"thing","names":[],%s"routes":{"list":{"path":"/v1/things"},
		"create":{"path":"/v1/things"%s},"read":{"path":"/v1/things/{id}"},"remove":{"path":"/v1/things/{id}"%s}},
		"changes":[{"by":{"path":"/v1/things/{id}"},"sets":{"name":"name"}%s}],
		"attributes":{"name":{"mode":"required","schema":{"type":"string"}%s}},"moments":{}}]}`
	for _, each := range []struct {
		name                                    string
		noun, create, remove, change, attribute string
		isServed                                bool
	}{
		{"nothing more", "", "", "", "", "", true},
		{"what may be ignored", `"actions":[],`, `,"secretFields":["a"]`, "", `,"rolls":["name"]`, `,"refers":"other"`, true},
		{"a rule of the noun", `"more":1,`, "", "", "", "", false},
		{"a rule of the creation", "", `,"more":1`, "", "", "", false},
		{"a rule of the deletion", "", "", `,"more":1`, "", "", false},
		{"a rule of a change", "", "", "", `,"more":1`, "", false},
		{"a rule of an attribute", "", "", "", "", `,"more":1`, false},
		{"a rule of a member", "", "", "", "", `,"of":{"a":{"more":1}}`, false},
	} {
		t.Run(each.name, func(t *testing.T) {
			text := fmt.Sprintf(noun, Format, each.noun, each.create, each.remove, each.change, each.attribute)
			nouns, leftOut, err := Parse([]byte(text))
			if err != nil || (len(nouns) == 1) != each.isServed || (leftOut["thing"] == nil) != each.isServed {
				t.Errorf("%v, %v, %v", nouns, leftOut, err)
			}
		})
	}
}
