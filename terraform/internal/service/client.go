// Package service sends requests to the API, and waits where it says so.
package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	requestTime = 60 * time.Second
	// A service that never answered is probably not there; one that answered before comes back.
	triesBeforeAnswer = 2
	triesAfterAnswer  = 8
	refusalsMost      = 10
	// Operations that a request waits for before its turn.
	busyMost  = 100
	pauseMost = time.Minute
	// The most that a service may say: what is longer comes from another program.
	answerBytesMost = 64 << 20
	listBytesMost   = 256 << 20
	pagesMost       = 10_000
)

// pauseLeast is the time between two requests; tests shorten it.
var pauseLeast = time.Second

// Client speaks to one service with one token.
type Client struct {
	endpoint    string
	token       string
	agent       string
	http        *http.Client
	hasAnswered atomic.Bool
}

// NewClient is a client of the service at the URL, without /v1.
func NewClient(endpoint, token, agent string) *Client {
	return &Client{
		endpoint: strings.TrimRight(endpoint, "/"),
		token:    token,
		agent:    agent,
		// a redirect would turn a change into a GET, and take the token elsewhere
		http: &http.Client{Timeout: requestTime, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// Request is one to the API.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	// Sent as JSON; nothing when nil.
	Body any
	// Of a POST that is carried out once.
	Key string
	// Where the size of the answer goes.
	size *int
}

var errTooLong = errors.New("the answer is longer than any of this service")

// mayRepeat is true for a request that does the same when it is sent twice.
func (r *Request) mayRepeat() bool {
	switch r.Method {
	case http.MethodGet, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Key != ""
}

// SendOwn is Send for a request to an object itself, whose 404 says that it is gone: a *Gone then.
func (c *Client) SendOwn(ctx context.Context, request Request) (map[string]any, error) {
	answer, err := c.Send(ctx, request)
	var problem *Problem
	if errors.As(err, &problem) && problem.saysGone() {
		return nil, &Gone{problem}
	}
	return answer, err
}

// Send answers the body of a success; nil when there is none. A refusal is a *Problem. It sends again what was lost on
// the way or took too long: with a key, the service carries it out once and answers as it did or would have. It waits
// as often as the service asks for it, and while another operation keeps the resource busy.
func (c *Client) Send(ctx context.Context, request Request) (map[string]any, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = json.Marshal(request.Body); err != nil {
			return nil, err
		}
	}
	lost, refused, busy := 0, 0, 0
	for {
		answer, problem, err := c.once(ctx, request, body)
		switch {
		case errors.Is(err, errTooLong):
			return nil, err
		case err != nil:
			lost++
			if lost >= c.tries() || ctx.Err() != nil {
				return nil, err
			}
			if err := pause(ctx, time.Duration(lost)*pauseLeast); err != nil {
				return nil, err
			}
		case problem == nil:
			return answer, nil
		case problem.ActiveOperation != "" && problem.Status == http.StatusConflict:
			if busy++; busy > busyMost {
				return nil, problem
			}
			// Its result is of no interest: the service judges the request itself afterwards.
			if err := c.Wait(ctx, Operation{ID: problem.ActiveOperation}); err != nil {
				var failed *Failed
				if !errors.As(err, &failed) {
					return nil, err
				}
			}
		case problem.isUnanswered() && refused < refusalsMost:
			// the same request, sent before, is still being carried out
			refused++
			if err := pause(ctx, time.Duration(refused)*pauseLeast); err != nil {
				return nil, err
			}
		case problem.isLost() && request.mayRepeat() && lost+1 < c.tries():
			lost++
			if err := pause(ctx, time.Duration(lost)*pauseLeast); err != nil {
				return nil, err
			}
		case problem.isTemporary() && refused < refusalsMost:
			refused++
			if err := pause(ctx, problem.retryAfter); err != nil {
				return nil, err
			}
		default:
			return nil, problem
		}
	}
}

func (c *Client) tries() int {
	if c.hasAnswered.Load() {
		return triesAfterAnswer
	}
	return triesBeforeAnswer
}

func (c *Client) once(ctx context.Context, request Request, body []byte) (map[string]any, *Problem, error) {
	address := c.endpoint + request.Path
	if len(request.Query) > 0 {
		address += "?" + request.Query.Encode()
	}
	sent, err := http.NewRequestWithContext(ctx, request.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	sent.Header.Set("Authorization", "Bearer "+c.token)
	sent.Header.Set("User-Agent", c.agent)
	if body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if request.Key != "" {
		sent.Header.Set("Idempotency-Key", request.Key)
	}
	response, err := c.http.Do(sent)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMost+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > answerBytesMost {
		return nil, nil, fmt.Errorf("%s: %w", request.Path, errTooLong)
	}
	if request.size != nil {
		*request.size = len(text)
	}
	c.hasAnswered.Store(true)
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		return nil, problemOf(response, text), nil
	}
	if len(text) == 0 {
		return nil, nil, nil
	}
	var answer map[string]any
	err = json.Unmarshal(text, &answer)
	return answer, nil, err
}

func pause(ctx context.Context, wanted time.Duration) error {
	timer := time.NewTimer(min(pauseMost, max(pauseLeast, wanted)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Items answers a complete list, page by page where it has pages; a *Gone when it is that of an object that is gone.
func (c *Client) Items(ctx context.Context, path string, query url.Values) ([]map[string]any, error) {
	items, isWhole, err := c.FirstItems(ctx, path, query, pagesMost)
	if err == nil && !isWhole {
		err = fmt.Errorf("the list of %s does not end", path)
	}
	return items, err
}

// FirstItems answers the items of so many pages, and whether the list has no others.
func (c *Client) FirstItems(
	ctx context.Context, path string, query url.Values, pages int,
) (items []map[string]any, isWhole bool, err error) {
	asked := url.Values{}
	for name, values := range query {
		asked[name] = values
	}
	bytes, seen := 0, map[string]bool{}
	for range pages {
		var size int
		page, err := c.SendOwn(ctx, Request{Method: http.MethodGet, Path: path, Query: asked, size: &size})
		if err != nil {
			return nil, false, err
		}
		list, isList := page["items"].([]any)
		if !isList {
			return nil, false, fmt.Errorf("the answer of %s is no list", path)
		}
		for _, each := range list {
			if item, isObject := each.(map[string]any); isObject {
				items = append(items, item)
			}
		}
		cursor, _ := page["next_cursor"].(string)
		if cursor == "" {
			return items, true, nil
		}
		if bytes += size; bytes > listBytesMost {
			return nil, false, fmt.Errorf("the list of %s is longer than any of this service", path)
		}
		if seen[cursor] {
			return nil, false, fmt.Errorf("the list of %s leads back to a page that it had before", path)
		}
		seen[cursor] = true
		asked.Set("cursor", cursor)
	}
	return items, false, nil
}
