// Package svccloud is what every program needs besides the calls of package api: a client that sends again what may be
// sent again, refusals as errors, waiting for operations, and complete lists.
package svccloud

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"svccloud.dev/svccloud-go/api"
)

// Version is that of this module.
const Version = "0.1.0"

// DefaultURL is the service on this machine.
const DefaultURL = "http://127.0.0.1:8080"

const (
	requestTime = 60 * time.Second
	waitSeconds = 20
	// Responses of a proxy, or different clocks: only a larger difference counts as early.
	early        = time.Second
	pauseLeast   = time.Second
	pauseMost    = time.Minute
	refusalsMost = 5
	// A service that never answered is probably not there; one that answered before comes back.
	triesBeforeAnswer = 2
	triesAfterAnswer  = 8
	// Clocks differ, and the service ends an operation itself at its deadline.
	afterDeadline = time.Minute
	bodyBytesMost = 64 << 20
)

// PagesMost is how many pages of a list are read.
const PagesMost = 10_000

// Options of a client. What is empty comes from SVCCLOUD_URL and SVCCLOUD_TOKEN.
type Options struct {
	URL   string
	Token string
	// HTTP sends the requests; http.DefaultTransport when nil.
	HTTP http.RoundTripper
	// Sleep is for programs with their own time.
	Sleep func(context.Context, time.Duration) error
}

// Client has the generated calls. Their errors are *Error for a refusal of the service.
type Client struct {
	*api.ClientWithResponses
	sleep func(context.Context, time.Duration) error
}

// Connect is a client of the service. It fails without a token.
func Connect(options Options) (*Client, error) {
	address, isSet := os.LookupEnv("SVCCLOUD_URL")
	if !isSet {
		address = DefaultURL
	}
	if options.URL != "" {
		address = options.URL
	}
	address = strings.TrimRight(strings.TrimSpace(address), "/")
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, fmt.Errorf("%q is not the URL of a service: it must start with http:// or https://", address)
	}
	token := options.Token
	if token == "" {
		token = os.Getenv("SVCCLOUD_TOKEN")
	}
	if token == "" {
		return nil, errors.New("there is no token: set SVCCLOUD_TOKEN")
	}
	if options.Sleep == nil {
		options.Sleep = pause
	}
	repeating := &repeating{token: token, sleep: options.Sleep, http: &http.Client{
		Transport: options.HTTP,
		Timeout:   requestTime,
		// a redirect would turn a change into a GET, and take the token elsewhere
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	calls, err := api.NewClientWithResponses(address, api.WithHTTPClient(repeating))
	if err != nil {
		return nil, err
	}
	return &Client{ClientWithResponses: calls, sleep: options.Sleep}, nil
}

// Error is a refusal of the service. Give RequestID to support.
type Error struct {
	Status  int
	Problem api.Problem
	// Code is the reason for programs, such as quota_exceeded; empty when there is none.
	Code string
	// Fields says what is wrong with which field.
	Fields    map[string]string
	RequestID string
	// RetryAfter is when the request may be repeated, if the service says so.
	RetryAfter *time.Duration
	text       string
}

func (e *Error) Error() string { return e.text }

// OperationFailed is an operation that did not succeed.
type OperationFailed struct{ Operation api.Operation }

func (f *OperationFailed) Error() string {
	how := "failed: " + f.Operation.Error
	if f.Operation.Status == "cancelled" {
		how = "was cancelled"
	}
	return fmt.Sprintf("operation %s (%s) %s", f.Operation.Id, f.Operation.Kind, how)
}

// ErrEndlessList is of a list whose pages do not end.
var ErrEndlessList = errors.New("the pages of the list do not end")

// ErrDeadline is of an operation that has not ended by its deadline.
var ErrDeadline = errors.New("after its deadline")

// repeating sends again what was lost on the way or refused for now. Each POST has an Idempotency-Key, so the service
// carries it out once.
type repeating struct {
	http        *http.Client
	token       string
	sleep       func(context.Context, time.Duration) error
	hasAnswered atomic.Bool
}

// Do is for the generated calls.
func (r *repeating) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("User-Agent", "svccloud-go/"+Version)
	if request.Method == http.MethodPost && request.Header.Get("Idempotency-Key") == "" {
		request.Header.Set("Idempotency-Key", newKey())
	}
	lost, refused := 0, 0
	for {
		response, body, err := r.once(request)
		tries := triesBeforeAnswer
		if r.hasAnswered.Load() {
			tries = triesAfterAnswer
		}
		var wait time.Duration
		if err != nil {
			lost++
			if lost >= tries || request.Context().Err() != nil || !mayRepeat(request, err) {
				return nil, err
			}
			wait = time.Duration(lost) * pauseLeast
		} else {
			r.hasAnswered.Store(true)
			isJSON := len(body) == 0 || strings.Contains(response.Header.Get("Content-Type"), "json")
			if response.StatusCode/100 == 2 && isJSON {
				response.Body = io.NopCloser(bytes.NewReader(body))
				return response, nil
			}
			refusal := refusalOf(response, body)
			asked, isAsked := refusal.pause(response.Header)
			switch {
			case isAsked && refused < refusalsMost:
				refused++
				wait = asked
			case refusal.isLost() && mayRepeat(request, nil) && lost+1 < tries:
				lost++
				wait = time.Duration(lost) * pauseLeast
			default:
				return nil, refusal
			}
		}
		if err := r.sleep(request.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// once answers with the body, which may be lost as well.
func (r *repeating) once(request *http.Request) (*http.Response, []byte, error) {
	again := request.Clone(request.Context())
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, nil, err
		}
		again.Body = body
	}
	response, err := r.http.Do(again)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMost+1))
	if err == nil && len(body) > bodyBytesMost {
		err = fmt.Errorf("the answer is larger than %d bytes", bodyBytesMost)
	}
	return response, body, err
}

// mayRepeat is true for a request that does the same when the service has already carried it out. One that was never
// sent may be sent, too.
func mayRepeat(request *http.Request, err error) bool {
	if request.Body != nil && request.GetBody == nil {
		return false
	}
	var dialled *net.OpError
	if errors.As(err, &dialled) && dialled.Op == "dial" {
		return true
	}
	switch request.Method {
	case http.MethodGet, http.MethodPut, http.MethodDelete:
		return true
	}
	return request.Header.Get("Idempotency-Key") != ""
}

func refusalOf(response *http.Response, body []byte) *Error {
	refusal := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), Fields: map[string]string{}}
	title, detail := http.StatusText(response.StatusCode), "no detail"
	if location := response.Header.Get("Location"); location != "" {
		detail = "it leads to " + location + "; set the URL of the service"
	} else if response.StatusCode < 300 {
		detail = "the answer is not JSON"
	}
	if json.Unmarshal(body, &refusal.Problem) == nil && refusal.Problem.Title != "" {
		title, detail = refusal.Problem.Title, refusal.Problem.Detail
		if refusal.Problem.Reason != nil {
			refusal.Code = *refusal.Problem.Reason
		}
		if refusal.Problem.Errors != nil {
			for _, each := range *refusal.Problem.Errors {
				refusal.Fields[each.Field] = each.Detail
			}
		}
	}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
		after := time.Duration(seconds) * time.Second
		refusal.RetryAfter = &after
	}
	refusal.text = fmt.Sprintf("%d %s: %s", refusal.Status, title, detail)
	return refusal
}

// isLost is true when it may be the answer of something between, or of a service that has just failed.
func (e *Error) isLost() bool {
	switch e.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return e.Status == http.StatusServiceUnavailable && e.RetryAfter == nil && e.Code == ""
}

// pause is until the request may be sent again; false for a refusal that stays.
func (e *Error) pause(headers http.Header) (time.Duration, bool) {
	isAsked := e.Status == http.StatusServiceUnavailable && e.RetryAfter != nil && e.Code != "no_capacity"
	// The same request, sent before, is still being carried out.
	isOpen := e.Status == http.StatusConflict && e.Code == "operation_in_progress" && e.Problem.ActiveOperationId == nil
	if e.Status != http.StatusTooManyRequests && !isAsked && !isOpen {
		return 0, false
	}
	wanted := spread(headers)
	if e.RetryAfter != nil && *e.RetryAfter > 0 {
		wanted = *e.RetryAfter
	}
	return min(pauseMost, max(pauseLeast, wanted)), true
}

var budget = regexp.MustCompile(`;r=(\d{1,9});t=(\d{1,9})`)

// spread shares the time until the budget is full again among the remaining requests (RateLimit).
func spread(headers http.Header) time.Duration {
	found := budget.FindStringSubmatch(headers.Get("RateLimit"))
	if found == nil {
		return 0
	}
	left, _ := strconv.Atoi(found[1])
	full, _ := strconv.Atoi(found[2])
	return time.Duration(full) * time.Second / time.Duration(max(1, left))
}

func newKey() string {
	var random [16]byte
	rand.Read(random[:]) // it never fails
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
}

func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

// WaitForOperation answers with the operation when it has succeeded. The error is *OperationFailed when it failed or was
// cancelled, and ErrDeadline after its deadline. Only the wait ends then, or with the context: the operation goes on.
func (c *Client) WaitForOperation(ctx context.Context, id string, onChange ...func(api.Operation)) (*api.Operation, error) {
	wait, latest := waitSeconds, ""
	for {
		sent := time.Now()
		// The service answers when something changes, so every request returns news.
		answer, err := c.GetOperationWithResponse(ctx, id, &api.GetOperationParams{Wait: &wait})
		if err != nil {
			return nil, err
		}
		if answer.JSON200 == nil {
			return nil, fmt.Errorf("operation %s is not in its answer", id)
		}
		operation := answer.JSON200.Operation
		before := latest
		latest = string(answer.Body)
		if latest != before {
			for _, call := range onChange {
				call(operation)
			}
		}
		switch operation.Status {
		case "succeeded":
			return &operation, nil
		case "failed", "cancelled":
			return nil, &OperationFailed{operation}
		}
		// by the clock of the service, as its deadlines are
		now, err := http.ParseTime(answer.HTTPResponse.Header.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		if now.After(operation.DeadlineAt.Add(afterDeadline)) {
			return nil, fmt.Errorf("operation %s (%s) has not ended; it is at step %q: %w", id, operation.Kind, operation.Step, ErrDeadline)
		}
		if latest == before && time.Since(sent) < waitSeconds*time.Second-early {
			if err := c.sleep(ctx, pauseLeast); err != nil {
				return nil, err
			}
		}
	}
}

// Pages is every item of a list. The first page is requested without a cursor. The error is ErrEndlessList when a cursor
// comes again, and after PagesMost pages.
func Pages[Item any](read func(cursor *string) ([]Item, *string, error)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		var cursor *string
		seen := map[string]bool{}
		for range PagesMost {
			items, next, err := read(cursor)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if seen[*next] {
				break
			}
			seen[*next] = true
			cursor = next
		}
		yield(none, ErrEndlessList)
	}
}
