package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

// machines have parts that only their own requests show, and lists that include them.
const machines = `{"format":3,"nouns":[{"noun":"machine","names":["title"],"uniqueIn":null,
	"routes":{
		"list":{"id":"list_machines","method":"GET","path":"/v1/machines","whole":true,"takes":["limit","id","include"]},
		"create":{"id":"create_machine","method":"POST","path":"/v1/machines"},
		"read":{"id":"get_machine","method":"GET","path":"/v1/machines/{id}"},
		"remove":{"id":"delete_machine","method":"DELETE","path":"/v1/machines/{id}","needs":{},"takes":{}}},
	"changes":[
		{"by":{"id":"update_machine","method":"PATCH","path":"/v1/machines/{id}"},"sets":{"title":"title"}},
		{"each":"ports","key":"network_id","listed":"parts.ports",
			"list":{"id":"list_ports","method":"GET","path":"/v1/machines/{id}/ports"},
			"add":{"id":"add_port","method":"POST","path":"/v1/machines/{id}/ports"},
			"remove":{"id":"remove_port","method":"DELETE","path":"/v1/machines/{id}/ports/{port_id}"}}],
	"attributes":{
		"id":{"mode":"computed","schema":{"type":"string"}},
		"title":{"mode":"required","schema":{"type":"string"}},
		"ports":{"mode":"default","default":[],"schema":{"type":"array","items":{"type":"object",
			"properties":{"network_id":{"type":"string"}},"required":["network_id"]}}}},
	"moments":{}}]}`

// fleet is a service with machines.
type fleet struct {
	mutex sync.Mutex
	size  int
	asked []string
	// Without it, the list is refused.
	lists bool
}

func (f *fleet) requests() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]string{}, f.asked...)
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.String())
	machine := func(number int) map[string]any {
		return map[string]any{"id": fmt.Sprint("m", number), "title": "t", "parts": map[string]any{
			"ports": []any{map[string]any{"network_id": nil}, map[string]any{"network_id": fmt.Sprint("n", number)}},
		}}
	}
	say := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	var number, from int
	switch {
	case r.Method != http.MethodGet:
		say(map[string]any{})
	case r.URL.Path == "/v1/machines":
		if !f.lists {
			w.WriteHeader(http.StatusForbidden)
			say(map[string]any{"title": "Forbidden", "detail": "No."})
			return
		}
		items := []any{}
		if ids := r.URL.Query()["id"]; len(ids) > 0 {
			for _, id := range ids {
				if _, err := fmt.Sscanf(id, "m%d", &number); err == nil && number < f.size {
					items = append(items, machine(number))
				}
			}
			say(map[string]any{"items": items})
			return
		}
		_, _ = fmt.Sscanf(r.URL.Query().Get("cursor"), "%d", &from)
		page := map[string]any{"next_cursor": nil}
		for number := from; number < min(from+100, f.size); number++ {
			items = append(items, machine(number))
		}
		if from+100 < f.size {
			page["next_cursor"] = fmt.Sprint(from + 100)
		}
		page["items"] = items
		say(page)
	case strings.HasSuffix(r.URL.Path, "/ports"):
		_, _ = fmt.Sscanf(r.URL.Path, "/v1/machines/m%d/ports", &number)
		say(map[string]any{"items": []any{map[string]any{"network_id": fmt.Sprint("n", number)}}})
	default:
		_, _ = fmt.Sscanf(r.URL.Path, "/v1/machines/m%d", &number)
		if number >= f.size {
			w.WriteHeader(http.StatusNotFound)
			say(map[string]any{"title": "Not found", "detail": "No such machine."})
			return
		}
		say(map[string]any{"machine": machine(number)})
	}
}

// refreshing answers what a provider reads of machines, as many at once as Terraform does.
func (f *fleet) refreshing(t *testing.T, server *Server, count int) int {
	t.Helper()
	kind := server.resources["svccloud_machine"].kind
	numbers := make(chan int)
	var workers sync.WaitGroup
	var mutex sync.Mutex
	there := 0
	for range 10 {
		workers.Go(func() {
			for number := range numbers {
				id, ports := fmt.Sprint("m", number), []any{map[string]any{"network_id": fmt.Sprint("n", number)}}
				current, _ := dynamicOf(map[string]any{"id": id, "title": "t", "ports": ports}, kind)
				response, err := server.ReadResource(context.Background(),
					&tfprotov6.ReadResourceRequest{TypeName: "svccloud_machine", CurrentState: current})
				if err != nil || len(response.Diagnostics) > 0 {
					t.Errorf("%v, %v", err, response)
					continue
				}
				after, err := objectOf(response.NewState, kind)
				if err != nil {
					t.Error(err)
				}
				if after == nil {
					continue
				}
				mutex.Lock()
				there++
				mutex.Unlock()
				if listed := after["ports"].([]any); len(listed) != 1 || keyOf(listed[0], "network_id") != fmt.Sprint("n", number) {
					t.Errorf("%s has %v", id, listed)
				}
			}
		})
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	return there
}

func (f *fleet) provider(t *testing.T) *Server {
	t.Helper()
	nouns, leftOut, err := definition.Parse([]byte(machines))
	if err != nil || len(leftOut) > 0 {
		t.Fatal(err, leftOut)
	}
	remote := httptest.NewServer(f)
	t.Cleanup(remote.Close)
	server := New(nouns, "test")
	server.client = service.NewClient(remote.URL, "token", "test")
	return server
}

func TestReadsOfManyObjectsArePages(t *testing.T) {
	service := &fleet{size: 200, lists: true}
	if there := service.refreshing(t, service.provider(t), 200); there != 200 {
		t.Errorf("%d are there", there)
	}
	if asked := service.requests(); len(asked) > 20 {
		t.Errorf("%d requests: %v", len(asked), asked)
	}
}

func TestReadsBeyondTheFirstPagesAreGatheredById(t *testing.T) {
	service := &fleet{size: 5000, lists: true}
	server := service.provider(t)
	if there := service.refreshing(t, server, 1200); there != 1200 {
		t.Errorf("%d are there", there)
	}
	// 10 pages, then 200 in batches of 10
	if asked := service.requests(); len(asked) > 60 {
		t.Errorf("%d requests", len(asked))
	}
}

func TestOnlyItsOwnReadSaysThatAMachineIsGone(t *testing.T) {
	service := &fleet{size: 40, lists: true}
	if there := service.refreshing(t, service.provider(t), 42); there != 40 {
		t.Errorf("%d are there", there)
	}
	asked := strings.Join(service.requests(), ",")
	for _, gone := range []string{"GET /v1/machines/m40", "GET /v1/machines/m41"} {
		if !strings.Contains(asked, gone) {
			t.Errorf("%s is not in %s", gone, asked)
		}
	}
}

func TestARefusedListIsNoRefusalOfTheObject(t *testing.T) {
	service := &fleet{size: 10}
	if there := service.refreshing(t, service.provider(t), 10); there != 10 {
		t.Errorf("%d are there", there)
	}
}

func TestAChangeDropsWhatWasRead(t *testing.T) {
	service := &fleet{size: 10, lists: true}
	server := service.provider(t)
	service.refreshing(t, server, 10)
	before := len(service.requests())
	service.refreshing(t, server, 10)
	if after := len(service.requests()); after != before {
		t.Errorf("%d requests for what is known", after-before)
	}
	noun := server.resources["svccloud_machine"].noun
	ports := []any{map[string]any{"network_id": "n1"}}
	prior := map[string]any{"id": "m1", "title": "other", "ports": ports}
	planned := map[string]any{"id": "m1", "title": "t", "ports": ports}
	if _, err := server.update(context.Background(), &change{noun: noun, prior: prior, planned: planned}); err != nil {
		t.Error(err)
	}
	asked := service.requests()
	if last := asked[len(asked)-1]; last != "GET /v1/machines?id=m1&include=parts&limit=100" {
		t.Errorf("what was changed is read by %s", last)
	}
	service.refreshing(t, server, 10)
	if len(service.requests()) == len(asked) {
		t.Error("what was read before the change is answered after it")
	}
}
