package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is a refusal of the service.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Reason string `json:"reason"`
	Errors []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"errors"`
	Resource *struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"resource"`
	ActiveOperation string `json:"active_operation_id"`
	Quota           *struct {
		Name      string  `json:"name"`
		Limit     float64 `json:"limit"`
		Used      float64 `json:"used"`
		Requested float64 `json:"requested"`
	} `json:"quota"`
	Alternatives []struct {
		Zone string `json:"zone"`
		Plan string `json:"plan"`
	} `json:"alternatives"`
	RequestID     string `json:"-"`
	isDocument    bool
	hasRetryAfter bool
	retryAfter    time.Duration
}

func problemOf(response *http.Response, text []byte) *Problem {
	problem := &Problem{}
	if json.Unmarshal(text, problem) != nil || problem.Title == "" {
		problem = &Problem{Title: http.StatusText(response.StatusCode), Detail: "The answer has no reason."}
		if location := response.Header.Get("Location"); location != "" {
			problem.Detail = "It leads to " + location + ". Set the endpoint to where the service is."
		}
	} else {
		problem.isDocument = true
	}
	problem.Status = response.StatusCode
	problem.RequestID = response.Header.Get("X-Request-Id")
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		problem.hasRetryAfter = true
		problem.retryAfter = time.Duration(seconds) * time.Second
	}
	return problem
}

func (p *Problem) isTemporary() bool {
	isAsked := p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable
	return isAsked && p.hasRetryAfter && p.Reason != "no_capacity"
}

// isLost is true when the answer may be that of something between, or of a service that has just failed.
func (p *Problem) isLost() bool {
	switch p.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable:
		// with a reason it stays so, and with a time it is asked for
		return !p.hasRetryAfter && p.Reason == ""
	}
	return false
}

// isUnanswered is true while the first request with a key is being carried out.
func (p *Problem) isUnanswered() bool {
	return p.Status == http.StatusConflict && p.Reason == "operation_in_progress" && p.ActiveOperation == ""
}

// Error is the reason in words.
func (p *Problem) Error() string {
	lines := []string{p.Detail}
	if p.Quota != nil {
		lines = append(lines, fmt.Sprintf("Quota %s: %g of %g are used, %g more were asked for.",
			p.Quota.Name, p.Quota.Used, p.Quota.Limit, p.Quota.Requested))
	}
	for _, each := range p.Alternatives {
		lines = append(lines, fmt.Sprintf("There is room for plan %s in zone %s.", each.Plan, each.Zone))
	}
	if p.RequestID != "" {
		lines = append(lines, "Request "+p.RequestID)
	}
	return strings.Join(lines, "\n")
}

// Gone says that the object of a request is not there.
type Gone struct{ *Problem }

// Unwrap is the refusal.
func (g *Gone) Unwrap() error { return g.Problem }

// saysGone is true when the service itself says that it has no such object. A path that it does not know, and a page of
// something between, say nothing of the object.
func (p *Problem) saysGone() bool {
	return p.Status == http.StatusNotFound && p.isDocument && strings.HasPrefix(p.Detail, "No such ")
}

// IsGone is true when the object of a SendOwn is not there.
func IsGone(err error) bool {
	var gone *Gone
	return errors.As(err, &gone)
}
