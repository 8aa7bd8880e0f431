package service

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// answering is a service that gives these answers one after the other, and the paths that it was asked for.
func answering(t *testing.T, answers ...func(http.ResponseWriter)) (*Client, *[]string) {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path)
		if len(*asked) > len(answers) {
			t.Errorf("one request too many: %s", r.URL)
			return
		}
		answers[len(*asked)-1](w)
	}))
	t.Cleanup(server.Close)
	return NewClient(server.URL, "token", "test"), asked
}

func says(status int, text string, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for index := 0; index+1 < len(headers); index += 2 {
			w.Header().Set(headers[index], headers[index+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

func TestSend(t *testing.T) {
	busy := says(409, `{"title":"Conflict","reason":"operation_in_progress","active_operation_id":"o1"}`)
	for _, each := range []struct {
		name    string
		answers []func(http.ResponseWriter)
		refused int
	}{
		{"answers at once", []func(http.ResponseWriter){says(200, `{}`)}, 0},
		{"waits when it is asked to", []func(http.ResponseWriter){says(429, `{}`, "Retry-After", "0"), says(200, `{}`)}, 0},
		{"waits for another operation, whatever comes of it", []func(http.ResponseWriter){
			busy, says(200, `{"operation":{"id":"o1","status":"failed"}}`), says(200, `{}`)}, 0},
		{"waits for the answer to the same request", []func(http.ResponseWriter){
			says(409, `{"title":"Conflict","reason":"operation_in_progress"}`), says(200, `{}`)}, 0},
		{"does not wait for room", []func(http.ResponseWriter){
			says(503, `{"title":"None","reason":"no_capacity"}`, "Retry-After", "0")}, 503},
		{"is refused", []func(http.ResponseWriter){says(409, `{"title":"Conflict","reason":"name_taken"}`)}, 409},
	} {
		t.Run(each.name, func(t *testing.T) {
			client, asked := answering(t, each.answers...)
			_, err := client.Send(context.Background(), Request{Method: http.MethodPost, Path: "/v1/things"})
			var problem *Problem
			if errors.As(err, &problem) != (each.refused != 0) || problem != nil && problem.Status != each.refused {
				t.Errorf("%v", err)
			}
			if len(*asked) != len(each.answers) {
				t.Errorf("asked %v", *asked)
			}
		})
	}
}

func init() { pauseLeast = time.Millisecond }

func TestWhatFailedOnTheWayIsSentAgain(t *testing.T) {
	for _, each := range []struct {
		method, key, text string
		status            int
		headers           []string
		isRepeated        bool
	}{
		{"GET", "", "<html>", 502, nil, true},
		{"PUT", "", "<html>", 504, nil, true},
		{"DELETE", "", `{"title":"Internal Server Error"}`, 500, nil, true},
		{"POST", "k", "<html>", 503, nil, true},
		{"POST", "", "<html>", 502, nil, false},
		{"PATCH", "", "<html>", 502, nil, false},
		{"GET", "", `{"title":"None","reason":"not_configured"}`, 503, nil, false},
		{"DELETE", "", "", 302, []string{"Location", "https://other.example.com/v1/things"}, false},
	} {
		t.Run(each.method+each.text, func(t *testing.T) {
			answers := []func(http.ResponseWriter){says(each.status, each.text, each.headers...)}
			if each.isRepeated {
				answers = append(answers, says(200, `{}`))
			}
			client, asked := answering(t, answers...)
			_, err := client.Send(context.Background(), Request{Method: each.method, Path: "/v1/things", Key: each.key})
			if (err == nil) != each.isRepeated || len(*asked) != len(answers) {
				t.Errorf("%v, asked %v", err, *asked)
			}
			if each.status == 302 && !strings.Contains(err.Error(), "https://other.example.com/v1/things") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWhatIsSentAgainHasAnEnd(t *testing.T) {
	answers := make([]func(http.ResponseWriter), triesAfterAnswer)
	for index := range answers {
		answers[index] = says(502, "<html>")
	}
	client, asked := answering(t, answers...)
	_, err := client.Send(context.Background(), Request{Method: http.MethodGet, Path: "/v1/things"})
	if err == nil || len(*asked) != triesAfterAnswer {
		t.Errorf("%v, asked %v", err, *asked)
	}
}

func TestGone(t *testing.T) {
	missing := `{"type":"about:blank","title":"Not found","status":404,"detail":"No such thing."}`
	for _, each := range []struct {
		name, text string
		status     int
		isGone     bool
	}{
		{"the service has no such object", missing, 404, true},
		{"the service does not know the path", `{"title":"Not found","detail":"There is nothing at this path."}`, 404, false},
		{"a page of a proxy", "<html>No such host</html>", 404, false},
		{"another refusal", `{"title":"Forbidden","detail":"No such luck."}`, 403, false},
	} {
		t.Run(each.name, func(t *testing.T) {
			client, _ := answering(t, says(each.status, each.text), says(each.status, each.text))
			request := Request{Method: http.MethodGet, Path: "/v1/things/t1"}
			_, err := client.SendOwn(context.Background(), request)
			if IsGone(err) != each.isGone || err == nil {
				t.Errorf("%v", err)
			}
			var problem *Problem
			if !errors.As(err, &problem) || problem.Status != each.status {
				t.Errorf("%v", err)
			}
			if _, err := client.Send(context.Background(), request); IsGone(err) {
				t.Error("another request says that the object is gone")
			}
		})
	}
}

func TestWait(t *testing.T) {
	for _, each := range []struct{ name, last, wants string }{
		{"ends when it succeeds", `{"operation":{"id":"o1","status":"succeeded"}}`, ""},
		{"says why it failed", `{"operation":{"id":"o1","status":"failed","error":"no disk"}}`, "no disk"},
		{"says that it was cancelled", `{"operation":{"id":"o1","status":"cancelled"}}`, "cancelled"},
		{"ends at the deadline", `{"operation":{"id":"o1","status":"running","step":"boot","deadline_at":"2001-01-01T00:00:00Z"}}`,
			"deadline"},
	} {
		t.Run(each.name, func(t *testing.T) {
			client, _ := answering(t, says(200, each.last))
			err := client.Wait(context.Background(), Operation{ID: "o1"})
			if each.wants == "" && err != nil || each.wants != "" && (err == nil || !strings.Contains(err.Error(), each.wants)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestItemsAreReadToTheEnd(t *testing.T) {
	client, _ := answering(t,
		says(200, `{"items":[{"id":"a"}],"next_cursor":"c"}`), says(200, `{"items":[{"id":"b"}],"next_cursor":null}`))
	items, err := client.Items(context.Background(), "/v1/things", nil)
	if err != nil || len(items) != 2 {
		t.Errorf("%v, %v", items, err)
	}
	client, _ = answering(t, says(200, `{}`))
	if _, err := client.Items(context.Background(), "/v1/things", nil); err == nil {
		t.Error("what is no list is an empty one")
	}
}
