package definition

import (
	"encoding/json"
	"testing"
)

func TestParseKind(t *testing.T) {
	for _, each := range []struct{ name, schema, kind string }{
		{"a text", `{"type":"string"}`, String},
		{"a number or null", `{"type":["integer","null"]}`, Number},
		{"one of several texts", `{"enum":["a","b"]}`, String},
		{"something or null", `{"anyOf":[{"type":"boolean"},{"type":"null"}]}`, Bool},
		{"a list", `{"type":"array","items":{"type":"string"}}`, List},
		{"labels", `{"type":"object","additionalProperties":{"type":"string"}}`, Map},
		{"a reference", `{"$ref":"#/$defs/It","$defs":{"It":{"type":"object","properties":{"a":{"type":"string"}}}}}`, Object},
	} {
		t.Run(each.name, func(t *testing.T) {
			kind, err := ParseKind(json.RawMessage(each.schema))
			if err != nil || kind.Type != each.kind {
				t.Fatalf("%v, %v", kind, err)
			}
		})
	}
	for _, schema := range []string{`{}`, `{"type":"null"}`, `{"type":"object"}`, `{"$ref":"#/$defs/It"}`} {
		if _, err := ParseKind(json.RawMessage(schema)); err == nil {
			t.Errorf("%s has a kind", schema)
		}
	}
}

func TestChoicesJoinTheirMembers(t *testing.T) {
	kind, err := ParseKind(json.RawMessage(`{"oneOf":[
		{"type":"object","properties":{"a":{"type":"string"},"kind":{"const":"a"}},"required":["a"]},
		{"type":"object","properties":{"b":{"type":"integer"},"kind":{"const":"b"}},"required":["b"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(kind.Members) != 3 || kind.Members["a"].IsRequired || kind.Members["b"].Type != Number {
		t.Errorf("%+v", kind.Members)
	}
}
