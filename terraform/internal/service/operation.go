package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	waitSeconds = "20"
	// Clocks differ, and the service ends an operation itself at its deadline.
	afterDeadline = time.Minute
	early         = 19 * time.Second
	// No operation has a later deadline.
	waitMost = 7 * 24 * time.Hour
	// Of what an operation shows, before the wait gets slower.
	changesMost = 100
)

// Operation is a change that takes time.
type Operation struct {
	ID       string
	Kind     string
	Status   string
	Step     string
	Error    string
	Deadline time.Time
}

// OperationOf finds the operation in an answer; nil when it has none.
func OperationOf(answer map[string]any) *Operation {
	object, isObject := answer["operation"].(map[string]any)
	if !isObject {
		return nil
	}
	text := func(name string) string { word, _ := object[name].(string); return word }
	deadline, _ := time.Parse(time.RFC3339, text("deadline_at"))
	return &Operation{
		ID: text("id"), Kind: text("kind"), Status: text("status"), Step: text("step"), Error: text("error"),
		Deadline: deadline,
	}
}

// Failed is an operation that did not succeed.
type Failed struct{ Operation Operation }

func (f *Failed) Error() string {
	if f.Operation.Status == "cancelled" {
		return fmt.Sprintf("Operation %s (%s) was cancelled.", f.Operation.ID, f.Operation.Kind)
	}
	return fmt.Sprintf("Operation %s (%s) failed: %s", f.Operation.ID, f.Operation.Kind, f.Operation.Error)
}

// Wait ends when the operation does, or at its deadline, or with the context. Only the wait ends then: the operation
// goes on.
func (c *Client) Wait(ctx context.Context, operation Operation) error {
	latest, begun, changes := operation, time.Now(), 0
	for {
		switch latest.Status {
		case "succeeded":
			return nil
		case "failed", "cancelled":
			return &Failed{latest}
		}
		isLate := !latest.Deadline.IsZero() && time.Now().After(latest.Deadline.Add(afterDeadline))
		if isLate || time.Since(begun) > waitMost {
			return fmt.Errorf("operation %s (%s) has not ended by its deadline; it is at step %q", latest.ID, latest.Kind, latest.Step)
		}
		sent := time.Now()
		answer, err := c.Send(ctx, Request{
			Method: http.MethodGet, Path: "/v1/operations/" + url.PathEscape(operation.ID), Query: url.Values{"wait": {waitSeconds}},
		})
		if ctx.Err() != nil {
			return fmt.Errorf("operation %s is still at step %q; it goes on without being waited for: %w", operation.ID, latest.Step, ctx.Err())
		}
		if err != nil {
			return err
		}
		next := OperationOf(answer)
		if next == nil {
			return fmt.Errorf("operation %s is not in its answer", operation.ID)
		}
		if changes++; (*next == latest || changes > changesMost) && time.Since(sent) < early {
			if err := pause(ctx, pauseLeast); err != nil {
				return err
			}
		}
		latest = *next
	}
}
