package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// disks are kept like storages, and made from images like servers.
const disks = `{"format":3,"nouns":[{"noun":"disk","names":["title"],"uniqueIn":null,
	"routes":{
		"list":{"id":"list_disks","method":"GET","path":"/v1/disks","whole":false,"takes":["label"]},
		"create":{"id":"create_disk","method":"POST","path":"/v1/disks","operation":true},
		"read":{"id":"get_disk","method":"GET","path":"/v1/disks/{id}"},
		"remove":{"id":"delete_disk","method":"DELETE","path":"/v1/disks/{id}","needs":{},"takes":{
			"with_copies":{"type":"string","enum":["true","false"]},"keep_days":{"type":"integer"},
			"copies":{"type":"string","enum":["keep","delete"]}}}},
	"changes":[
		{"by":{"id":"update_disk","method":"PATCH","path":"/v1/disks/{id}"},
			"sets":{"title":"title","schedule":"schedule","labels":"labels"}},
		{"by":{"id":"detach_disk","method":"POST","path":"/v1/disks/{id}/detach"},"when":{"server_id":null}},
		{"by":{"id":"attach_disk","method":"POST","path":"/v1/disks/{id}/attach"},"sets":{"server_id":"server_id"}}],
	"attributes":{
		"id":{"mode":"computed","schema":{"type":"string"}},
		"size":{"mode":"computed","schema":{"type":"integer"}},
		"title":{"mode":"required","schema":{"type":"string"}},
		"labels":{"mode":"default","default":{},"schema":{"type":"object","additionalProperties":{"type":"string"}}},
		"template":{"mode":"optional","replaces":true,"nullWith":"image_id","schema":{"type":"string"}},
		"image_id":{"mode":"optional","replaces":true,"schema":{"type":["string","null"]}},
		"key":{"mode":"optional","replaces":true,"shows":"nothing","schema":{"type":["string","null"]}},
		"schedule":{"mode":"optional","shows":"nothing","schema":{"type":["string","null"]}},
		"server_id":{"mode":"optional","later":true,"schema":{"type":["string","null"]}}},
	"moments":{}}]}`

func diskNoun(t *testing.T) *definition.Noun {
	t.Helper()
	nouns, leftOut, err := definition.Parse([]byte(disks))
	if err != nil || len(leftOut) > 0 {
		t.Fatal(err, leftOut)
	}
	return nouns[0]
}

// answer is what the service says to one request.
type answer struct {
	request, body string
	status        int
	text          string
}

// serving is a provider of a service that expects these requests in their order.
func serving(t *testing.T, answers ...answer) *Server {
	t.Helper()
	asked := 0
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked >= len(answers) {
			t.Errorf("one request too many: %s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		expected := answers[asked]
		asked++
		body, _ := io.ReadAll(r.Body)
		if got := r.Method + " " + r.URL.String(); got != expected.request {
			t.Errorf("%s, not %s", got, expected.request)
		}
		if expected.body != "" && expected.body != string(body) {
			t.Errorf("%s, not %s", body, expected.body)
		}
		w.WriteHeader(expected.status)
		_, _ = w.Write([]byte(expected.text))
	}))
	t.Cleanup(func() {
		remote.Close()
		if asked < len(answers) {
			t.Errorf("%s was not asked", answers[asked].request)
		}
	})
	server := New([]*definition.Noun{diskNoun(t)}, "test")
	server.client = service.NewClient(remote.URL, "token", "test")
	return server
}

// disk is one as the service shows it.
func disk(members map[string]any) string {
	shown := map[string]any{"id": "d1", "title": "data", "size": 2.0, "template": nil, "image_id": nil, "server_id": nil}
	for name, each := range members {
		shown[name] = each
	}
	text, _ := json.Marshal(map[string]any{"disk": shown})
	return string(text)
}

// state is a disk as Terraform keeps it.
func state(members map[string]any) map[string]any {
	kept := map[string]any{"id": "d1", "title": "data", "size": 2.0}
	for name, each := range members {
		kept[name] = each
	}
	return kept
}

func TestWhatLeftItsPlaceIsNotTakenAway(t *testing.T) {
	server := serving(t,
		answer{"GET /v1/disks/d1", "", 200, disk(nil)},
		answer{"POST /v1/disks/d1/attach", `{"server_id":"s2"}`, 200, `{}`},
		answer{"GET /v1/disks/d1", "", 200, disk(map[string]any{"server_id": "s2"})},
	)
	plan := &change{
		noun: diskNoun(t), prior: state(map[string]any{"server_id": "s1"}),
		planned: state(map[string]any{"server_id": "s2"}), config: map[string]any{},
	}
	if after, err := server.update(context.Background(), plan); err != nil || after["server_id"] != "s2" {
		t.Errorf("%v, %v", after, err)
	}
}

func TestWhatIsElsewhereIsTakenAwayFirst(t *testing.T) {
	server := serving(t,
		answer{"GET /v1/disks/d1", "", 200, disk(map[string]any{"server_id": "s1"})},
		answer{"POST /v1/disks/d1/detach", "", 200, `{}`},
		answer{"GET /v1/disks/d1", "", 200, disk(nil)},
	)
	plan := &change{
		noun: diskNoun(t), prior: state(map[string]any{"server_id": "s1"}), planned: state(nil), config: map[string]any{},
	}
	if after, err := server.update(context.Background(), plan); err != nil || after["server_id"] != nil {
		t.Errorf("%v, %v", after, err)
	}
}

func TestADeletionTakesWhatItsParametersAre(t *testing.T) {
	server := serving(t, answer{"DELETE /v1/disks/d1?copies=keep&keep_days=30&with_copies=true", "", 200, `{}`})
	prior := state(map[string]any{"with_copies": true, "keep_days": 30.0, "copies": "keep"})
	if after, err := server.remove(context.Background(), &change{noun: diskNoun(t), prior: prior}); err != nil || after != nil {
		t.Errorf("%v, %v", after, err)
	}
	kinds := map[string]string{}
	for _, attribute := range server.resources["svccloud_disk"].schema.Block.Attributes {
		if attribute.Type != nil {
			kinds[attribute.Name] = attribute.Type.String()
		}
	}
	wants := map[string]string{"with_copies": "tftypes.Bool", "keep_days": "tftypes.Number", "copies": "tftypes.String"}
	for name, kind := range wants {
		if kinds[name] != kind {
			t.Errorf("%s is %s", name, kinds[name])
		}
	}
}

func TestOnlyItsOwnAnswerSaysThatAnObjectIsGone(t *testing.T) {
	gone := `{"title":"Not found","status":404,"detail":"No such disk."}`
	noun := diskNoun(t)
	read := func(answers ...answer) *tfprotov6.ReadResourceResponse {
		server := serving(t, answers...)
		current, err := dynamicOf(state(nil), server.resources["svccloud_disk"].kind)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.ReadResource(context.Background(),
			&tfprotov6.ReadResourceRequest{TypeName: "svccloud_disk", CurrentState: current})
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	isKept := func(response *tfprotov6.ReadResourceResponse) bool {
		kept, err := objectOf(response.NewState, New([]*definition.Noun{noun}, "test").resources["svccloud_disk"].kind)
		if err != nil {
			t.Fatal(err)
		}
		return kept["id"] == "d1"
	}
	if response := read(answer{"GET /v1/disks/d1", "", 404, gone}); isKept(response) || len(response.Diagnostics) > 0 {
		t.Error("what is gone stays in the state")
	}
	for _, other := range []answer{
		{"GET /v1/disks/d1", "", 404, "<html>"},
		{"GET /v1/disks/d1", "", 404, `{"title":"Not found","status":404,"detail":"There is nothing at this path."}`},
		{"GET /v1/disks/d1", "", 200, disk(map[string]any{"id": "d2"})},
		{"GET /v1/disks/d1", "", 200, `{}`},
	} {
		if response := read(other); !isKept(response) || len(response.Diagnostics) != 1 {
			t.Errorf("%s: the state is lost", other.text)
		}
	}
	server := serving(t, answer{"DELETE /v1/disks/d1", "", 200, `{"operation":{"id":"o1","status":"running"}}`},
		answer{"GET /v1/operations/o1?wait=20", "", 404, `{"title":"Not found","detail":"No such operation."}`})
	if after, err := server.remove(context.Background(), &change{noun: noun, prior: state(nil)}); after == nil || err == nil {
		t.Error("an operation that is lost deletes the object")
	}
	server = serving(t, answer{"DELETE /v1/disks/d1", "", 404, gone})
	if after, err := server.remove(context.Background(), &change{noun: noun, prior: state(nil)}); after != nil || err != nil {
		t.Errorf("%v, %v", after, err)
	}
}

func TestWhatFailsAfterACreationIsAWarning(t *testing.T) {
	refused := `{"title":"Forbidden","status":403,"detail":"Not now."}`
	made := answer{"POST /v1/disks", "", 201, disk(nil)}
	for name, answers := range map[string][]answer{
		"a read":       {made, {"POST /v1/disks/d1/attach", "", 200, `{}`}, {"GET /v1/disks/d1", "", 403, refused}},
		"a later step": {made, {"POST /v1/disks/d1/attach", "", 403, refused}},
	} {
		t.Run(name, func(t *testing.T) {
			server := serving(t, answers...)
			kind := server.resources["svccloud_disk"].kind
			written := map[string]any{"title": "data", "server_id": "s1"}
			planned := map[string]any{"title": "data", "server_id": "s1", "id": value.Unknown, "size": value.Unknown}
			config, _ := dynamicOf(written, kind)
			plan, _ := dynamicOf(planned, kind)
			none, _ := dynamicOf(nil, kind)
			response, err := server.ApplyResourceChange(context.Background(), &tfprotov6.ApplyResourceChangeRequest{
				TypeName: "svccloud_disk", PriorState: none, PlannedState: plan, Config: config,
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(response.Diagnostics) != 1 || response.Diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning {
				t.Errorf("%+v", response.Diagnostics)
			}
			after, err := objectOf(response.NewState, kind)
			if err != nil || after["id"] != "d1" || after["size"] != 2.0 || after["server_id"] != "s1" {
				t.Errorf("%v, %v", after, err)
			}
		})
	}
}

func TestAnImportSendsWhatChangesInPlace(t *testing.T) {
	plan := &change{
		noun: diskNoun(t), prior: state(nil), config: map[string]any{}, isImported: true,
		planned: state(map[string]any{"key": "k", "schedule": "30 3 * * *"}),
	}
	if plan.isChanged("key") || len(plan.replacements()) > 0 {
		t.Error("an import replaces what it could not read")
	}
	server := serving(t, answer{"PATCH /v1/disks/d1", `{"schedule":"30 3 * * *"}`, 200, `{}`},
		answer{"GET /v1/disks/d1", "", 200, disk(nil)})
	if _, err := server.update(context.Background(), plan); err != nil {
		t.Error(err)
	}
}

func TestADataSourceReadsWhatAListLacks(t *testing.T) {
	server := serving(t,
		answer{"GET /v1/disks", "", 200, `{"items":[{"id":"d0","title":"other"},{"id":"d1","title":"data"},{"id":"d2","title":"data"}]}`},
		answer{"GET /v1/disks/d1", "", 200, disk(nil)},
		answer{"GET /v1/disks/d2", "", 404, `{"title":"Not found","status":404,"detail":"No such disk."}`},
	)
	found, err := server.search(context.Background(), diskNoun(t), map[string]any{"title": "data"})
	if err != nil || len(found) != 1 || found[0]["size"] != 2.0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestSettingsThatAreNotKnownAreNotLeftOut(t *testing.T) {
	t.Setenv("SVCCLOUD_TOKEN", "of somebody else")
	configure := func(name string) (*Server, []*tfprotov6.Diagnostic) {
		server := New([]*definition.Noun{diskNoun(t)}, "test")
		config, err := dynamicOf(map[string]any{name: value.Unknown}, settingsSchema.ValueType())
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.ConfigureProvider(context.Background(), &tfprotov6.ConfigureProviderRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		return server, response.Diagnostics
	}
	for _, name := range []string{"endpoint", "token"} {
		if _, diagnostics := configure(name); len(diagnostics) != 1 {
			t.Errorf("%s: %v", name, diagnostics)
		}
	}
	server, diagnostics := configure("default_labels")
	if len(diagnostics) > 0 || server.withDefaults(map[string]any{"a": "b"}) != value.Unknown {
		t.Error("labels_all is known before the default labels are")
	}
	all, was := map[string]any{"a": "b", "project": "x"}, map[string]any{"project": "x"}
	if own := server.withoutDefaults(all, nil, was); len(own) != 1 || own["a"] != "b" {
		t.Errorf("%v", own)
	}
}

func TestDefaultLabelsAreSentOnceTheyAreKnown(t *testing.T) {
	server := serving(t,
		answer{"PATCH /v1/disks/d1", `{"labels":{"a":"b"}}`, 200, `{}`},
		answer{"GET /v1/disks/d1", "", 200, disk(map[string]any{"labels": map[string]any{"a": "b"}})},
	)
	kind := server.resources["svccloud_disk"].kind
	none := map[string]any{}
	prior, _ := dynamicOf(state(map[string]any{"labels": none, "labels_all": none}), kind)
	config, _ := dynamicOf(map[string]any{"title": "data"}, kind)
	server.settings = settings{isUnknown: true, dryRun: true}
	plan, err := server.PlanResourceChange(context.Background(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "svccloud_disk", PriorState: prior, ProposedNewState: prior, Config: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	server.settings = settings{defaultLabels: map[string]any{"a": "b"}}
	response, err := server.ApplyResourceChange(context.Background(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "svccloud_disk", PriorState: prior, PlannedState: plan.PlannedState, Config: config,
	})
	if err != nil || len(response.Diagnostics) > 0 {
		t.Fatal(err, response.Diagnostics)
	}
	after, err := objectOf(response.NewState, kind)
	if err != nil || len(after["labels"].(map[string]any)) != 0 || after["labels_all"].(map[string]any)["a"] != "b" {
		t.Errorf("%v, %v", after, err)
	}
}

func TestAFailedOperationIsAnError(t *testing.T) {
	server := serving(t, answer{"POST /v1/disks", "", 202,
		`{"disk":{"id":"d1"},"operation":{"id":"o1","status":"failed","error":"no host"}}`})
	plan := &change{noun: diskNoun(t), planned: map[string]any{"title": "data"}, config: map[string]any{"title": "data"}}
	var later *afterwards
	if after, err := server.create(context.Background(), plan, "k"); err == nil || errors.As(err, &later) || after["id"] != "d1" {
		t.Errorf("%v, %v", after, err)
	}
}

func TestATemplateIsNotShownForAnImage(t *testing.T) {
	shown := disk(map[string]any{"image_id": "i1", "template": "i1"})
	for _, isNew := range []bool{false, true} {
		server := serving(t, answer{"GET /v1/disks/d1", "", 200, shown})
		after, err := server.read(context.Background(), diskNoun(t), "d1", map[string]any{"id": "d1"}, isNew)
		if err != nil || after["template"] != nil || after["image_id"] != "i1" {
			t.Errorf("%v, %v", after, err)
		}
	}
}
