package svccloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"svccloud.dev/svccloud-go/api"
)

const (
	id      = "00000000-0000-4000-8000-000000000001"
	later   = "2999-01-01T00:00:00Z"
	list    = `{"items":[],"next_cursor":null}`
	created = `{"ssh_key":{"id":"` + id + `","name":"laptop"}}`
)

// reply of the service. A status of 0 loses the connection, -1 loses it within the body.
type reply struct {
	status  int
	headers map[string]string
	body    string
}

func refusal(status int, headers map[string]string, members string) reply {
	return reply{status, headers, fmt.Sprintf(`{"status":%d,"title":"Refused","detail":"Because."%s}`, status, members)}
}

func operation(status, deadline, failure string) reply {
	return reply{200, nil, fmt.Sprintf(`{"operation":{"id":"%s","kind":"server.create","status":"%s","step":"boot","deadline_at":"%s","error":"%s"}}`,
		id, status, deadline, failure)}
}

func after(seconds string) map[string]string { return map[string]string{"Retry-After": seconds} }

type request struct{ method, path, token, agent, key, body string }

// world is a service on this machine that gives the replies one after the other, and then the last one for ever.
type world struct {
	*Client
	replies func(int) reply
	seen    []request
	slept   []time.Duration
}

func (w *world) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	header := in.Header.Get
	w.seen = append(w.seen, request{in.Method, in.URL.String(), header("Authorization"), header("User-Agent"), header("Idempotency-Key"), string(body)})
	next := w.replies(len(w.seen) - 1)
	if next.status <= 0 {
		connection, _, _ := out.(http.Hijacker).Hijack()
		if next.status < 0 {
			fmt.Fprint(connection, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
		}
		connection.Close()
		return
	}
	out.Header().Set("Content-Type", "application/json")
	out.Header().Set("X-Request-Id", "r1")
	for name, value := range next.headers {
		out.Header().Set(name, value)
	}
	out.WriteHeader(next.status)
	fmt.Fprint(out, next.body)
}

func (w *world) reply(replies ...reply) {
	w.seen, w.slept = nil, nil
	w.replies = func(index int) reply { return replies[min(index, len(replies)-1)] }
}

func open(t *testing.T) *world {
	w := &world{}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	// without connections that are kept: the transport would repeat by itself what was lost on one
	client, err := Connect(Options{URL: server.URL + "/", Token: "secret", HTTP: &http.Transport{DisableKeepAlives: true},
		Sleep: func(_ context.Context, duration time.Duration) error { w.slept = append(w.slept, duration); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w.Client = client
	return w
}

func (w *world) list() error {
	_, err := w.ListServersWithResponse(context.Background(), &api.ListServersParams{})
	return err
}

func (w *world) create() error {
	answer, err := w.CreateSshKeyWithResponse(context.Background(), &api.CreateSshKeyParams{}, api.CreateSshKey{Name: "laptop", PublicKey: "k"})
	if err == nil && answer.JSON201.SshKey.Name != "laptop" {
		return errors.New("another answer")
	}
	return err
}

func (w *world) read(cursor *string) ([]api.Server, *string, error) {
	page, err := w.ListServersWithResponse(context.Background(), &api.ListServersParams{Cursor: cursor})
	if err != nil {
		return nil, nil, err
	}
	return page.JSON200.Items, page.JSON200.NextCursor, nil
}

func equal(t *testing.T, is, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(is, wanted) {
		t.Errorf("is %v, wanted %v", is, wanted)
	}
}

func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v, and does not say %q", err, text)
	}
}

func seconds(numbers ...int) []time.Duration {
	var all []time.Duration
	for _, number := range numbers {
		all = append(all, time.Duration(number)*time.Second)
	}
	return all
}

func TestARequestHasTheTokenAndTheNameOfTheClient(t *testing.T) {
	w := open(t)
	w.reply(reply{200, nil, list})
	equal(t, w.list(), nil)
	equal(t, w.seen, []request{{"GET", "/v1/servers", "Bearer secret", "svccloud-go/" + Version, "", ""}})
}

func TestPauses(t *testing.T) {
	w := open(t)
	for _, each := range []struct {
		refusals []reply
		slept    []time.Duration
	}{
		{[]reply{refusal(429, after("7"), ""), refusal(503, after("3"), "")}, seconds(7, 3)},
		{[]reply{refusal(429, after("86400"), ""), refusal(429, after("0"), ""), refusal(429, after("-5"), ""),
			refusal(429, after("Wed, 21 Oct 2015 07:28:00 GMT"), ""), refusal(429, after("99999999999999999999"), "")}, seconds(60, 1, 1, 1, 1)},
		{[]reply{refusal(429, map[string]string{"RateLimit": `"api";r=2;t=30`}, "")}, seconds(15)},
	} {
		w.reply(append(each.refusals, reply{200, nil, list})...)
		equal(t, w.list(), nil)
		equal(t, w.slept, each.slept)
	}
}

func TestRefusalsThatStay(t *testing.T) {
	w := open(t)
	for _, each := range []struct {
		reply reply
		code  string
		seen  int
	}{
		{refusal(429, after("1"), `,"reason":"rate_limited"`), "rate_limited", 6},
		{refusal(503, after("1"), `,"reason":"no_capacity"`), "no_capacity", 1},
		{refusal(503, nil, `,"reason":"disabled"`), "disabled", 1},
		{reply{404, nil, "<html>"}, "", 1},
		{reply{404, nil, strings.Repeat("[", 100_000)}, "", 1},
		{reply{404, nil, `{"reason":5,"errors":[1]}`}, "", 1},
	} {
		w.reply(each.reply)
		var refused *Error
		if !errors.As(w.list(), &refused) {
			t.Fatal("no refusal")
		}
		equal(t, refused.Code, each.code)
		equal(t, len(w.seen), each.seen)
	}
}

func TestARefusalHasTheProblemItsCodeTheRequestAndTheFields(t *testing.T) {
	w := open(t)
	w.reply(refusal(400, nil, `,"reason":"invalid","errors":[{"field":"hostname","detail":"is too long"}]`))
	var refused *Error
	if !errors.As(w.list(), &refused) {
		t.Fatal("no refusal")
	}
	equal(t, refused.Error(), "400 Refused: Because.")
	equal(t, []any{refused.Status, refused.Code, refused.RequestID}, []any{400, "invalid", "r1"})
	equal(t, refused.Fields, map[string]string{"hostname": "is too long"})
}

func TestARedirectIsNotFollowedAndAPageIsNoAnswer(t *testing.T) {
	w := open(t)
	w.reply(reply{302, map[string]string{"Location": "http://elsewhere.example/"}, ""})
	says(t, w.list(), "elsewhere.example")
	w.reply(reply{200, map[string]string{"Content-Type": "text/html"}, "<html>"})
	says(t, w.list(), "not JSON")
}

func TestACreationWhoseConnectionIsLostIsSentAgainWithTheSameKey(t *testing.T) {
	w := open(t)
	for _, lost := range []int{0, -1} {
		w.reply(reply{lost, nil, ""}, reply{201, nil, created})
		equal(t, w.create(), nil)
		equal(t, len(w.seen), 2)
		equal(t, w.seen[0], w.seen[1])
		equal(t, len(w.seen[0].key), 36)
	}
	first := w.seen[0].key
	equal(t, w.create(), nil)
	if w.seen[2].key == first {
		t.Error("two creations have one key")
	}
}

func TestACreationThatIsStillCarriedOutIsAskedForAgain(t *testing.T) {
	w := open(t)
	w.reply(refusal(409, nil, `,"reason":"operation_in_progress"`), reply{201, nil, created})
	equal(t, w.create(), nil)
	w.reply(refusal(409, nil, `,"reason":"operation_in_progress","active_operation_id":"`+id+`"`))
	says(t, w.create(), "409")
	equal(t, len(w.seen), 1)
}

func TestAChangeWhoseAnswerIsLostIsNotSentAgain(t *testing.T) {
	w := open(t)
	for _, lost := range []reply{{0, nil, ""}, refusal(502, nil, "")} {
		w.reply(reply{200, nil, list})
		equal(t, w.list(), nil)
		w.reply(lost)
		_, err := w.UpdateServerWithResponse(context.Background(), id, api.UpdateServer{})
		if err == nil {
			t.Error("it is lost")
		}
		equal(t, len(w.seen), 1)
	}
}

func TestAServiceThatAnsweredIsTriedEightTimesAndAnotherTwice(t *testing.T) {
	w := open(t)
	w.reply(reply{0, nil, ""})
	says(t, w.list(), "EOF")
	equal(t, len(w.seen), 2)
	w.reply(reply{200, nil, list})
	equal(t, w.list(), nil)
	w.reply(reply{0, nil, ""}, refusal(502, nil, ""), reply{0, nil, ""})
	_, err := w.DeleteServerWithResponse(context.Background(), id, &api.DeleteServerParams{})
	says(t, err, "EOF")
	equal(t, len(w.seen), 8)
}

func TestPagesAreReadToTheEnd(t *testing.T) {
	w := open(t)
	w.reply(reply{200, nil, `{"items":[{"id":"` + id + `"}],"next_cursor":"two"}`}, reply{200, nil, list})
	count := 0
	for _, err := range Pages(w.read) {
		equal(t, err, nil)
		count++
	}
	equal(t, count, 1)
	equal(t, []string{w.seen[0].path, w.seen[1].path}, []string{"/v1/servers", "/v1/servers?cursor=two"})
}

func TestPagesThatLeadBackAndPagesWithoutEndAreAnError(t *testing.T) {
	back, endless := 0, 0
	for _, err := range Pages(func(*string) ([]int, *string, error) {
		back++
		cursor := fmt.Sprint(back % 2)
		return nil, &cursor, nil
	}) {
		equal(t, errors.Is(err, ErrEndlessList), true)
	}
	equal(t, back, 3)
	for _, err := range Pages(func(*string) ([]int, *string, error) {
		endless++
		cursor := fmt.Sprint(endless)
		return nil, &cursor, nil
	}) {
		equal(t, errors.Is(err, ErrEndlessList), true)
	}
	equal(t, endless, PagesMost)
}

func TestAnOperationIsWaitedForToItsEnd(t *testing.T) {
	w := open(t)
	w.reply(operation("pending", later, ""), refusal(503, after("2"), ""), operation("running", later, ""), operation("succeeded", later, ""))
	var observed []string
	ended, err := w.WaitForOperation(context.Background(), id, func(each api.Operation) { observed = append(observed, string(each.Status)) })
	equal(t, err, nil)
	equal(t, string(ended.Status), "succeeded")
	equal(t, observed, []string{"pending", "running", "succeeded"})
	equal(t, w.seen[0].path, "/v1/operations/"+id+"?wait=20")
}

func TestEarlyAnswersWithoutNewsDoNotBecomeAFlood(t *testing.T) {
	w := open(t)
	running := operation("running", later, "")
	w.reply(running, running, running, operation("succeeded", later, ""))
	_, err := w.WaitForOperation(context.Background(), id)
	equal(t, err, nil)
	equal(t, w.slept, seconds(1, 1))
}

func TestAnOperationThatFailsOrOutlivesItsDeadlineIsAnError(t *testing.T) {
	w := open(t)
	w.reply(operation("failed", later, "No host has room."))
	_, err := w.WaitForOperation(context.Background(), id)
	says(t, err, "failed: No host has room.")
	w.reply(operation("cancelled", later, ""))
	_, err = w.WaitForOperation(context.Background(), id)
	says(t, err, "was cancelled")
	w.reply(operation("running", "2001-01-01T00:00:00Z", ""))
	_, err = w.WaitForOperation(context.Background(), id)
	equal(t, errors.Is(err, ErrDeadline), true)
	equal(t, len(w.seen), 1)
}

func TestAContextEndsAPause(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	equal(t, pause(ctx, time.Hour), context.Canceled)
}

func TestTheVariablesAreThoseOfTheCommand(t *testing.T) {
	w := open(t)
	w.reply(reply{200, nil, list})
	server := httptest.NewServer(w)
	defer server.Close()
	t.Setenv("SVCCLOUD_URL", " "+server.URL+"/ ")
	t.Setenv("SVCCLOUD_TOKEN", "other")
	client, err := Connect(Options{})
	equal(t, err, nil)
	_, err = client.ListServersWithResponse(context.Background(), &api.ListServersParams{})
	equal(t, err, nil)
	equal(t, w.seen[0].token, "Bearer other")
	t.Setenv("SVCCLOUD_TOKEN", "")
	_, err = Connect(Options{})
	says(t, err, "SVCCLOUD_TOKEN")
	_, err = Connect(Options{URL: "cloud.example", Token: "t"})
	says(t, err, "http://")
}
