package provider

import (
	"encoding/json"
	"reflect"
	"testing"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

func kindOf(t *testing.T, schema string) *definition.Kind {
	t.Helper()
	kind, err := definition.ParseKind(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

const interfaces = `{"type":"array","items":{"type":"object","required":["network_id"],"properties":{
	"network_id":{"type":"string"},"ipv4_address":{"type":["string","null"]},"mode":{"type":"string","default":"plain"}}}}`

func member(network string, address any, mode any) map[string]any {
	return map[string]any{"network_id": network, "ipv4_address": address, "mode": mode}
}

func TestComplete(t *testing.T) {
	kind := kindOf(t, interfaces)
	of := rules{"ipv4_address": {IsChosen: true}}
	for _, each := range []struct {
		name                  string
		written, prior, wants []any
	}{
		{"what is new is known later", []any{member("a", nil, nil)}, nil, []any{member("a", value.Unknown, "plain")}},
		{"what stays is as it was", []any{member("a", nil, nil)}, []any{member("a", "10.0.0.2", "plain")},
			[]any{member("a", "10.0.0.2", "plain")}},
		{"members are the same ones by their key", []any{member("b", nil, nil)},
			[]any{member("a", "10.0.0.2", "plain"), member("b", "10.0.1.2", "plain")}, []any{member("b", "10.0.1.2", "plain")}},
		{"what is written is meant", []any{member("a", "10.0.0.9", "other")}, []any{member("a", "10.0.0.2", "plain")},
			[]any{member("a", "10.0.0.9", "other")}},
	} {
		t.Run(each.name, func(t *testing.T) {
			got := complete(kind, of, each.written, each.prior, "network_id")
			if !reflect.DeepEqual(got, each.wants) {
				t.Errorf("%v, not %v", got, each.wants)
			}
		})
	}
}

const portRules = `{"type":"array","items":{"type":"object","required":["action"],"properties":{
	"action":{"type":"string"},"comment":{"type":"string","default":""},
	"port_start":{"type":["integer","null"]},"port_end":{"type":["integer","null"]}}}}`

func TestWhatIsNoLongerWrittenIsTakenAway(t *testing.T) {
	kind, of := kindOf(t, portRules), rules{"port_end": {Follows: "port_start"}}
	rule := func(comment, start, end any) []any {
		return []any{map[string]any{"action": "drop", "comment": comment, "port_start": start, "port_end": end}}
	}
	for _, each := range []struct {
		name                  string
		written, prior, wants []any
	}{
		{"ports", rule(nil, nil, nil), rule("", 53.0, 60.0), rule("", nil, nil)},
		{"the last port", rule(nil, 53.0, nil), rule("", 53.0, 60.0), rule("", 53.0, 53.0)},
		{"a comment", rule(nil, 53.0, 60.0), rule("DNS", 53.0, 60.0), rule("", 53.0, 60.0)},
		{"the last port of what is new", rule(nil, 53.0, nil), nil, rule("", 53.0, 53.0)},
	} {
		t.Run(each.name, func(t *testing.T) {
			if got := complete(kind, of, each.written, each.prior, ""); !reflect.DeepEqual(got, any(each.wants)) {
				t.Errorf("%v, not %v", got, each.wants)
			}
		})
	}
}

func TestMembersStayInTheirOrder(t *testing.T) {
	kind := kindOf(t, interfaces)
	shown := []any{member("c", nil, nil), member("b", nil, nil), member("a", nil, nil)}
	before := []any{member("a", nil, nil), member("b", nil, nil)}
	got := project(kind, shown, before, "network_id")
	wants := []any{member("a", nil, nil), member("b", nil, nil), member("c", nil, nil)}
	if !reflect.DeepEqual(got, wants) {
		t.Errorf("%v", got)
	}
}

func TestFill(t *testing.T) {
	for _, each := range []struct {
		path  string
		ids   []string
		wants string
	}{
		{"/v1/servers", []string{"a"}, "/v1/servers"},
		{"/v1/servers/{id}/stop", []string{"a/b"}, "/v1/servers/a%2Fb/stop"},
		{"/v1/servers/{id}/interfaces/{interface_id}", []string{"a", "b"}, "/v1/servers/a/interfaces/b"},
	} {
		if got := fill(each.path, each.ids...); got != each.wants {
			t.Errorf("%s, not %s", got, each.wants)
		}
	}
}
