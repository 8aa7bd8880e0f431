package service

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAListThatLeadsBackEnds(t *testing.T) {
	client, asked := answering(t, says(200, `{"items":[{"id":"a"}],"next_cursor":"c"}`),
		says(200, `{"items":[{"id":"b"}],"next_cursor":"d"}`), says(200, `{"items":[{"id":"a"}],"next_cursor":"c"}`))
	if _, err := client.Items(context.Background(), "/v1/things", nil); err == nil || len(*asked) != 3 {
		t.Errorf("%v after %d requests", err, len(*asked))
	}
}

func TestOnlyTheFirstPagesAreRead(t *testing.T) {
	client, _ := answering(t, says(200, `{"items":[{"id":"a"}],"next_cursor":"c"}`),
		says(200, `{"items":[{"id":"b"}],"next_cursor":"d"}`))
	items, isWhole, err := client.FirstItems(context.Background(), "/v1/things", nil, 2)
	if err != nil || isWhole || len(items) != 2 {
		t.Errorf("%v, %v, %v", items, isWhole, err)
	}
}

func TestAnAnswerWithoutEndIsAnError(t *testing.T) {
	sent := 0
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent != 0 {
			t.Error("it is asked for again")
		}
		block := []byte(strings.Repeat("x", 1<<20))
		_, _ = w.Write([]byte(`{"name":"`))
		for r.Context().Err() == nil && sent < 4*answerBytesMost {
			written, err := w.Write(block)
			if err != nil {
				return
			}
			sent += written
		}
	}))
	defer endless.Close()
	client := NewClient(endless.URL, "token", "test")
	_, err := client.Send(context.Background(), Request{Method: http.MethodGet, Path: "/v1/things/1"})
	if err == nil || !strings.Contains(err.Error(), "longer") {
		t.Error(err)
	}
}

func TestAServiceThatIsAlwaysBusyIsRefused(t *testing.T) {
	asked := 0
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if strings.HasPrefix(r.URL.Path, "/v1/operations/") {
			_, _ = w.Write([]byte(`{"operation":{"id":"o1","status":"succeeded"}}`))
			return
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"title":"Conflict","reason":"operation_in_progress","active_operation_id":"o1"}`))
	}))
	defer busy.Close()
	client := NewClient(busy.URL, "token", "test")
	if _, err := client.Send(context.Background(), Request{Method: http.MethodPost, Path: "/v1/things"}); err == nil {
		t.Error("it was carried out")
	}
	if asked > 2*busyMost+1 {
		t.Errorf("%d requests", asked)
	}
}

func TestAnOperationThatKeepsChangingIsAskedSlowly(t *testing.T) {
	before := pauseLeast
	pauseLeast = 10 * time.Millisecond
	defer func() { pauseLeast = before }()
	asked := 0
	restless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = fmt.Fprintf(w, `{"operation":{"id":"o1","status":"running","step":"%d"}}`, asked)
	}))
	defer restless.Close()
	client := NewClient(restless.URL, "token", "test")
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if err := client.Wait(ctx, Operation{ID: "o1"}); err == nil || asked > changesMost+60 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

func TestAnOperationIsNoPath(t *testing.T) {
	client, asked := answering(t, says(200, `{"operation":{"id":"o1","status":"succeeded"}}`))
	_ = client.Wait(context.Background(), Operation{ID: "../account?x="})
	if len(*asked) != 1 || (*asked)[0] != "GET /v1/operations/../account?x=" {
		t.Error(*asked)
	}
}
