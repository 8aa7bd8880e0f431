package provider

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

// A shelf has pages, which only it shows; a lamp gets ready without an operation, and nothing but its list shows it.
const shelves = `{"format":3,"nouns":[
	{"noun":"shelf","names":["name"],"routes":{
		"list":{"path":"/v1/shelves","takes":[]},"create":{"path":"/v1/shelves"},
		"read":{"method":"GET","path":"/v1/shelves/{id}"},"remove":{"path":"/v1/shelves/{id}"}},
	"changes":[],"attributes":{"id":{"mode":"computed","schema":{"type":"string"}},
		"name":{"mode":"required","schema":{"type":"string"}},
		"pages":{"mode":"default","default":[],"schema":{"type":"array","items":{"type":"string"}}}},"moments":{}},
	{"noun":"page","names":["name"],"parent":{"field":"shelf_id","refers":"shelf","parameter":"id","own":"page_id",
		"instead":"pages","shownIn":{"read":{"id":"get_shelf","method":"GET","path":"/v1/shelves/{id}"},"field":"pages"}},
	"routes":{"create":{"method":"POST","path":"/v1/shelves/{id}/pages"},
		"remove":{"method":"DELETE","path":"/v1/shelves/{id}/pages/{page_id}","needs":{}}},
	"changes":[{"by":{"method":"PATCH","path":"/v1/shelves/{id}/pages/{page_id}"},
		"sets":{"count":"count","growth":"growth","release":"release"},"grows":true}],
	"attributes":{"id":{"mode":"computed","schema":{"type":"string"}},
		"shelf_id":{"mode":"required","replaces":true,"schema":{"type":"string"}},
		"name":{"mode":"required","replaces":true,"schema":{"type":"string"}},
		"count":{"mode":"required","alias":"line_count","freeWith":"growth","schema":{"type":"integer"}},
		"growth":{"mode":"default","default":null,"schema":{"type":["string","null"]}},
		"release":{"mode":"chosen","schema":{"type":"string"}}},"moments":{}},
	{"noun":"lamp","identity":"place","names":["place"],"ready":{"field":"state","is":"lit","failed":"broken"},
	"routes":{"list":{"path":"/v1/lamps","takes":[]},"create":{"method":"POST","path":"/v1/lamps","noDryRun":true}},
	"changes":[],"attributes":{"place":{"mode":"required","replaces":true,"schema":{"type":"string"}}},"moments":{}}]}`

func shelving(t *testing.T, answers ...answer) *Server {
	t.Helper()
	nouns, leftOut, err := definition.Parse([]byte(shelves))
	if err != nil || len(leftOut) > 0 {
		t.Fatal(err, leftOut)
	}
	asked := serving(t, answers...)
	server := New(nouns, "test")
	server.client = asked.client
	server.settings = settings{dryRun: true}
	return server
}

func (s *Server) nounNamed(name string) *definition.Noun { return s.resources[prefix+name].noun }

const shown = `{"shelf":{"id":"s1","name":"low","pages":[{"id":"p1","name":"first","count":3,"growth":null,"release":"1.9"}]}}`

func TestAPartIsMadeReadChangedAndRemovedBelowItsParent(t *testing.T) {
	server := shelving(t,
		answer{"POST /v1/shelves/s1/pages", `{"count":3,"name":"first"}`, 201, `{"page":{"id":"p1","name":"first","count":3}}`},
		answer{"GET /v1/shelves/s1", "", 200, shown},
		answer{"PATCH /v1/shelves/s1/pages/p1", `{"count":4}`, 200, `{}`},
		answer{"GET /v1/shelves/s1", "", 200, shown},
		answer{"DELETE /v1/shelves/s1/pages/p1", "", 200, `{}`},
	)
	noun := server.nounNamed("page")
	planned := map[string]any{"shelf_id": "s1", "name": "first", "line_count": 3.0}
	after, err := server.create(context.Background(), &change{noun: noun, planned: planned, config: planned}, "k")
	if err != nil || after["id"] != "p1" || after["shelf_id"] != "s1" || after["line_count"] != 3.0 {
		t.Fatalf("%v, %v", after, err)
	}
	more := copyOf(after)
	more["line_count"] = 4.0
	if _, err := server.update(context.Background(), &change{noun: noun, prior: after, planned: more, config: more}); err != nil {
		t.Error(err)
	}
	if left, err := server.remove(context.Background(), &change{noun: noun, prior: after}); left != nil || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAPartIsGoneWithoutItsPlaceInTheParent(t *testing.T) {
	noun := shelving(t).nounNamed("page")
	gone := `{"title":"Not found","status":404,"detail":"No such shelf."}`
	for name, each := range map[string]struct {
		answer answer
		isGone bool
	}{
		"not shown":             {answer{"GET /v1/shelves/s1", "", 200, `{"shelf":{"id":"s1","pages":[]}}`}, true},
		"the parent is gone":    {answer{"GET /v1/shelves/s1", "", 404, gone}, true},
		"an answer without any": {answer{"GET /v1/shelves/s1", "", 200, `{"shelf":{"id":"s1"}}`}, false},
		"a page of a proxy":     {answer{"GET /v1/shelves/s1", "", 404, "<html>"}, false},
	} {
		if _, err := shelving(t, each.answer).readOwn(context.Background(), noun, "s1/p1"); service.IsGone(err) != each.isGone || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPartIsFoundByWhatPeopleCallIt(t *testing.T) {
	for _, wanted := range []string{"low/first", "s1/p1", "low/p1"} {
		server := shelving(t,
			answer{"GET /v1/shelves", "", 200, `{"items":[{"id":"s1","name":"low"}]}`}, answer{"GET /v1/shelves/s1", "", 200, shown})
		if found, err := server.find(context.Background(), server.nounNamed("page"), wanted); found != "s1/p1" || err != nil {
			t.Errorf("%s is %s, %v", wanted, found, err)
		}
	}
	server := shelving(t)
	if found, err := server.find(context.Background(), server.nounNamed("page"), "first"); err == nil {
		t.Errorf("it is %s", found)
	}
}

func TestWhatTheServiceChoosesIsNoDrift(t *testing.T) {
	server := shelving(t, answer{"PATCH /v1/shelves/s1/pages/p1", `{"count":3,"growth":null}`, 200, `{}`},
		answer{"GET /v1/shelves/s1", "", 200, shown})
	noun := server.nounNamed("page")
	written := map[string]any{"id": "p1", "shelf_id": "s1", "name": "first", "line_count": 3.0, "growth": "fast"}
	grown := map[string]any{"id": "p1", "name": "first", "count": 9.0, "growth": "fast"}
	if is := server.attributesShown(noun, grown, written, false); is["line_count"] != 3.0 {
		t.Errorf("%v", is)
	}
	if is := server.attributesShown(noun, grown, map[string]any{}, true); is["line_count"] != 9.0 {
		t.Errorf("%v", is)
	}
	// what was chosen may be anything: the number is sent along
	bound := copyOf(written)
	bound["growth"] = nil
	if _, err := server.update(context.Background(), &change{noun: noun, prior: written, planned: bound, config: bound}); err != nil {
		t.Error(err)
	}
}

func TestVersionsGrowNumberByNumber(t *testing.T) {
	noun := shelving(t).nounNamed("page")
	for _, each := range []struct {
		before, after any
		isRefused     bool
	}{
		{"1.9", "1.10", false}, {"1.10", "1.9", true}, {"1.9", "1.9", false}, {"new", "old", false}, {nil, "1.9", false},
	} {
		plan := &change{noun: noun, prior: map[string]any{"release": each.before}, planned: map[string]any{"release": each.after}}
		if refused := plan.shrinking(noun.Changes[0]); (len(refused) > 0) != each.isRefused {
			t.Errorf("%v to %v: %v", each.before, each.after, refused)
		}
	}
}

func TestWhatAnotherNounKeepsIsLeftAsItIs(t *testing.T) {
	server := shelving(t)
	is := map[string]any{"id": "s1", "name": "low", "pages": []any{"first"}}
	if planned := server.wishes(server.nounNamed("shelf"), map[string]any{"name": "low"}, is); len(planned["pages"].([]any)) != 1 {
		t.Errorf("%v", planned)
	}
	empty := map[string]any{"name": "low", "pages": []any{}}
	if planned := server.wishes(server.nounNamed("shelf"), empty, is); len(planned["pages"].([]any)) != 0 {
		t.Errorf("%v", planned)
	}
}

func TestACreationWithoutAnOperationIsWaitedFor(t *testing.T) {
	lookPause = time.Millisecond
	lamp := func(state string) answer {
		return answer{"GET /v1/lamps", "", 200, `{"items":[{"place":"door","state":"` + state + `"}]}`}
	}
	made := answer{"POST /v1/lamps", `{"place":"door"}`, 201, `{"lamp":{"place":"door"}}`}
	written := map[string]any{"place": "door"}
	server := shelving(t, made, lamp("dark"), lamp("lit"), lamp("lit"))
	plan := &change{noun: server.nounNamed("lamp"), planned: written, config: written}
	if diagnostics := server.askCreation(context.Background(), plan); len(diagnostics) > 0 {
		t.Errorf("%v", diagnostics)
	}
	if after, err := server.create(context.Background(), plan, "k"); err != nil || after["place"] != "door" {
		t.Errorf("%v, %v", after, err)
	}
	server = shelving(t, made, lamp("dark"), lamp("broken"))
	plan.noun = server.nounNamed("lamp")
	if after, err := server.create(context.Background(), plan, "k"); err == nil || after["place"] != "door" {
		t.Errorf("%v, %v", after, err)
	}
}

func TestWhatNothingDeletesIsForgotten(t *testing.T) {
	server := shelving(t)
	noun := server.nounNamed("lamp")
	prior := map[string]any{"place": "door"}
	warned := removal(noun, prior)
	if len(warned) != 1 || warned[0].Severity != tfprotov6.DiagnosticSeverityWarning {
		t.Errorf("%v", warned)
	}
	if left, err := server.remove(context.Background(), &change{noun: noun, prior: prior}); left != nil || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}
