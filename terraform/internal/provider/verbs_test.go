package provider

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// A disk has a key that is read, can be wiped, and its key can be replaced; a lock has a key that nothing reads.
const verbs = `{"nouns":[{"noun":"disk","secrets":[
		{"id":"get_disk_key","method":"GET","path":"/v1/disks/{id}/key","summary":"Get the key","required":["lifetime"],
			"query":{"lifetime":{"type":"integer","minimum":10}},"body":{},
			"shows":{"key":{"type":"string"},"lifetime":{"type":"integer"}}}],
	"actions":[
		{"id":"wipe_disk","method":"POST","path":"/v1/disks/{id}/wipe","summary":"Wipe a disk","required":["pattern"],
			"dryRun":true,"query":{},"body":{"pattern":{"type":"string"},"passes":{"type":"integer"}}},
		{"id":"rotate_disk_key","method":"POST","path":"/v1/disks/{id}/rotate","summary":"Rotate","required":[],
			"query":{},"body":{},"secretFields":["key"]}]},
	{"noun":"lock","secrets":[],"actions":[
		{"id":"rotate_lock","method":"POST","path":"/v1/locks/{id}/rotate","summary":"Rotate","required":[],
			"query":{},"body":{},"secretFields":["key"]}]},
	{"noun":"untried","secrets":[
		{"id":"get_untried_key","method":"GET","path":"/v1/untried/{zone}/key","summary":"Get","required":[],
			"query":{},"body":{},"shows":{"key":{"type":"string"}}}],"actions":[
		{"id":"use_untried","method":"POST","path":"/v1/untried/{zone}/use","summary":"Use","required":[],
			"query":{},"body":{}}]}]}`

func withVerbs(t *testing.T, server *Server) *Server {
	t.Helper()
	secrets, actions, err := definition.ParseVerbs([]byte(verbs), []*definition.Noun{diskNoun(t), {Noun: "lock"}})
	if err != nil {
		t.Fatal(err)
	}
	server.Offer(secrets, actions)
	server.settings.dryRun = true
	return server
}

func TestSecretsOfAllNounsAndActionsOfThoseThatAreServed(t *testing.T) {
	server := withVerbs(t, serving(t))
	var offered []string
	metadata, _ := server.GetMetadata(context.Background(), nil)
	for _, each := range metadata.EphemeralResources {
		offered = append(offered, each.TypeName)
	}
	for _, each := range metadata.Actions {
		offered = append(offered, each.TypeName)
	}
	slices.Sort(offered)
	// what rotate_lock answers would be lost
	if got := strings.Join(offered, " "); got != "svccloud_disk_key svccloud_rotate_disk_key svccloud_untried_key svccloud_wipe_disk" {
		t.Error(got)
	}
}

func TestASecretIsRead(t *testing.T) {
	server := withVerbs(t, serving(t, answer{"GET /v1/disks/d1/key?lifetime=30", "", 200, `{"key":"k","more":1}`}))
	secret := server.secrets["svccloud_disk_key"]
	open := func(config map[string]any) (*tfprotov6.OpenEphemeralResourceResponse, []*tfprotov6.Diagnostic) {
		dynamic, err := dynamicOf(config, secret.kind)
		if err != nil {
			t.Fatal(err)
		}
		valid, err := server.ValidateEphemeralResourceConfig(context.Background(),
			&tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: "svccloud_disk_key", Config: dynamic})
		if err != nil || len(valid.Diagnostics) > 0 {
			return nil, valid.Diagnostics
		}
		response, err := server.OpenEphemeralResource(context.Background(),
			&tfprotov6.OpenEphemeralResourceRequest{TypeName: "svccloud_disk_key", Config: dynamic})
		if err != nil {
			t.Fatal(err)
		}
		return response, response.Diagnostics
	}
	if _, faults := open(map[string]any{"id": "d1", "lifetime": 3.0}); len(faults) != 1 {
		t.Errorf("%v", faults)
	}
	response, faults := open(map[string]any{"id": "d1", "lifetime": 30.0})
	if len(faults) > 0 {
		t.Fatal(faults[0])
	}
	result, err := objectOf(response.Result, secret.kind)
	if err != nil || result["key"] != "k" || result["id"] != "d1" || result["lifetime"] != 30.0 {
		t.Errorf("%v, %v", result, err)
	}
}

func TestAnActionIsDoneAndWaitedFor(t *testing.T) {
	config := map[string]any{"id": "d1", "pattern": "zero"}
	invoke := func(server *Server) []*tfprotov6.Diagnostic {
		dynamic, _ := dynamicOf(config, server.actions["svccloud_wipe_disk"].kind)
		stream, err := server.InvokeAction(context.Background(),
			&tfprotov6.InvokeActionRequest{ActionType: "svccloud_wipe_disk", Config: dynamic})
		if err != nil {
			t.Fatal(err)
		}
		isCompleted := false
		var diagnostics []*tfprotov6.Diagnostic
		for event := range stream.Events {
			if completed, isLast := event.Type.(tfprotov6.CompletedInvokeActionEventType); isLast {
				isCompleted, diagnostics = true, completed.Diagnostics
			}
		}
		if !isCompleted {
			t.Error("it does not end")
		}
		return diagnostics
	}
	started := answer{"POST /v1/disks/d1/wipe", `{"pattern":"zero"}`, 202, `{"operation":{"id":"o1","status":"running"}}`}
	done := answer{"GET /v1/operations/o1?wait=20", "", 200, `{"operation":{"id":"o1","status":"succeeded"}}`}
	if diagnostics := invoke(withVerbs(t, serving(t, started, done))); len(diagnostics) > 0 {
		t.Error(diagnostics[0])
	}
	failed := answer{"GET /v1/operations/o1?wait=20", "", 200, `{"operation":{"id":"o1","status":"failed","error":"worn"}}`}
	if diagnostics := invoke(withVerbs(t, serving(t, started, failed))); len(diagnostics) != 1 {
		t.Errorf("%v", diagnostics)
	}
}

func TestAPlannedActionIsOnlyAskedFor(t *testing.T) {
	server := withVerbs(t, serving(t, answer{"POST /v1/disks/d1/wipe?dry_run=true", `{"pattern":"zero"}`, 409,
		`{"title":"Conflict","status":409,"detail":"It is in use."}`}))
	plan := func(config map[string]any) []*tfprotov6.Diagnostic {
		dynamic, err := dynamicOf(config, server.actions["svccloud_wipe_disk"].kind)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.PlanAction(context.Background(),
			&tfprotov6.PlanActionRequest{ActionType: "svccloud_wipe_disk", Config: dynamic})
		if err != nil {
			t.Fatal(err)
		}
		return response.Diagnostics
	}
	diagnostics := plan(map[string]any{"id": "d1", "pattern": "zero"})
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning {
		t.Errorf("%v", diagnostics)
	}
	// of a disk that the plan creates
	if diagnostics := plan(map[string]any{"id": value.Unknown, "pattern": "zero"}); len(diagnostics) > 0 {
		t.Error(diagnostics[0])
	}
}

func TestAListHasWhatCanBeImported(t *testing.T) {
	items := `{"items":[{"id":"d0","title":"other"},{"id":"d1","title":"data"},{"id":"d2","title":"data"}]}`
	listed := answer{"GET /v1/disks", "", 200, items}
	gone := answer{"GET /v1/disks/d1", "", 404, `{"title":"Not found","status":404,"detail":"No such disk."}`}
	whole := answer{"GET /v1/disks/d2", "", 200, disk(map[string]any{"id": "d2"})}
	list := func(server *Server, isWhole bool, limit int64) string {
		config, _ := dynamicOf(map[string]any{"title": "data"}, listSchema(diskNoun(t)).ValueType())
		stream, err := server.ListResource(context.Background(), &tfprotov6.ListResourceRequest{
			TypeName: "svccloud_disk", Config: config, IncludeResource: isWhole, Limit: limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for each := range stream.Results {
			if len(each.Diagnostics) > 0 {
				t.Fatal(each.Diagnostics[0])
			}
			identity, _ := objectOf(each.Identity.IdentityData, identityKind(diskNoun(t)))
			text := each.DisplayName + " " + identity["id"].(string)
			if isWhole {
				resource, err := objectOf(each.Resource, server.resources["svccloud_disk"].kind)
				if err != nil || resource["size"] != 2.0 {
					t.Errorf("%v, %v", resource, err)
				}
			}
			found = append(found, text)
		}
		return strings.Join(found, ",")
	}
	if found := list(serving(t, listed), false, 0); found != "data d1,data d2" {
		t.Error(found)
	}
	if found := list(serving(t, listed), false, 1); found != "data d1" {
		t.Error(found)
	}
	if found := list(serving(t, listed, gone, whole), true, 0); found != "data d2" {
		t.Error(found)
	}
}

func TestWhatHadAnotherNameIsTakenOver(t *testing.T) {
	noun := diskNoun(t)
	noun.Formerly = []string{"drive"}
	noun.Attributes["title"].Formerly = []string{"label"}
	server := New([]*definition.Noun{noun}, "test")
	older := &tfprotov6.RawState{JSON: []byte(`{"id":"d1","label":"data","size":2,"gone":true}`)}
	isTakenOver := func(state *tfprotov6.DynamicValue) bool {
		object, err := objectOf(state, server.resources["svccloud_disk"].kind)
		return err == nil && object["id"] == "d1" && object["title"] == "data" && object["size"] == 2.0
	}
	upgraded, err := server.UpgradeResourceState(context.Background(),
		&tfprotov6.UpgradeResourceStateRequest{TypeName: "svccloud_disk", RawState: older})
	if err != nil || !isTakenOver(upgraded.UpgradedState) {
		t.Errorf("%v, %v", upgraded, err)
	}
	for _, each := range []struct {
		provider, noun string
		isMoved        bool
	}{
		{"registry.terraform.io/svccloud/svccloud", "svccloud_drive", true},
		{"cloud.example.com/svccloud/svccloud", "svccloud_drive", true},
		{"registry.terraform.io/other/other", "svccloud_drive", false},
		{"registry.terraform.io/svccloud/svccloud", "svccloud_disc", false},
	} {
		moved, err := server.MoveResourceState(context.Background(), &tfprotov6.MoveResourceStateRequest{
			SourceProviderAddress: each.provider, SourceTypeName: each.noun, TargetTypeName: "svccloud_disk", SourceState: older,
		})
		if err != nil || (len(moved.Diagnostics) == 0) != each.isMoved {
			t.Errorf("%v: %v, %v", each, moved, err)
		}
		if each.isMoved && (!isTakenOver(moved.TargetState) || moved.TargetIdentity == nil) {
			t.Errorf("%v: %v", each, moved)
		}
	}
}
