package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// ApplyResourceChange does what was planned. What is there is in the state even when a later step fails.
func (s *Server) ApplyResourceChange(
	ctx context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	resource := s.resources[request.TypeName]
	prior, err := objectOf(request.PriorState, resource.kind)
	if err != nil {
		return nil, err
	}
	planned, err := objectOf(request.PlannedState, resource.kind)
	if err != nil {
		return nil, err
	}
	config, err := objectOf(request.Config, resource.kind)
	if err != nil {
		return nil, err
	}
	if planned[labelsAll] == value.Unknown {
		planned[labelsAll] = s.withDefaults(planned[labels])
	}
	// An interrupt ends no wait: the object would be tainted.
	ctx = context.WithoutCancel(ctx)
	remembered := privateOf(request.PlannedPrivate)
	plan := &change{
		noun: resource.noun, prior: prior, planned: planned, config: config, isImported: remembered.IsImported,
	}
	var state map[string]any
	var doing string
	switch {
	case planned == nil:
		doing = "The deletion of " + nameOf(resource.noun, prior)
		state, err = s.remove(ctx, plan)
	case prior == nil:
		doing = "The creation of " + nameOf(resource.noun, planned)
		state, err = s.create(ctx, plan, remembered.Key)
	default:
		doing = "The change of " + nameOf(resource.noun, prior)
		state, err = s.update(ctx, plan)
	}
	response := &tfprotov6.ApplyResourceChangeResponse{Private: request.PlannedPrivate}
	var later *afterwards
	isDone := err == nil || errors.As(err, &later)
	if err != nil {
		response.Diagnostics = diagnosticsOf(resource.noun, doing, err)
	}
	if isDone {
		response.Private = private{}.text()
	}
	if later != nil {
		asWarnings(response.Diagnostics, later)
	}
	if response.NewState, err = dynamicOf(state, resource.kind); err != nil {
		return nil, err
	}
	response.NewIdentity, err = identityOf(resource.noun, state)
	return response, err
}

// afterwards is what failed when the object was there already, and well. As an error it would taint the object.
type afterwards struct {
	error
	noun *definition.Noun
}

func (a *afterwards) Unwrap() error { return a.error }

func asWarnings(diagnostics []*tfprotov6.Diagnostic, later *afterwards) {
	for _, diagnostic := range diagnostics {
		diagnostic.Severity = tfprotov6.DiagnosticSeverityWarning
		diagnostic.Detail += fmt.Sprintf(
			"\nThe %s is there, and the state has what is known of it. The next plan shows what is missing.", later.noun.Noun)
	}
}

// planOver is what was planned, with what is shown where the plan did not know.
func planOver(planned, shown any) any {
	if planned == value.Unknown {
		return shown
	}
	switch planned := planned.(type) {
	case map[string]any:
		members := value.ObjectOf(shown)
		object := make(map[string]any, len(planned))
		for name, each := range planned {
			object[name] = planOver(each, members[name])
		}
		return object
	case []any:
		members := value.ListOf(shown)
		list := make([]any, len(planned))
		for index, each := range planned {
			var member any
			if index < len(members) {
				member = members[index]
			}
			list[index] = planOver(each, member)
		}
		return list
	}
	return planned
}

// limited is the context in which operations are waited for: as long as people say, else to their deadline.
func limited(
	ctx context.Context, object map[string]any, stage string,
) (context.Context, context.CancelFunc, error) {
	written, isText := value.ObjectOf(object[timeouts])[stage].(string)
	if !isText {
		return ctx, func() {}, nil
	}
	duration, err := time.ParseDuration(written)
	if err != nil {
		return nil, nil, fmt.Errorf("timeouts.%s: %w", stage, err)
	}
	limited, cancel := context.WithTimeout(ctx, duration)
	return limited, cancel, nil
}

func (s *Server) create(ctx context.Context, plan *change, key string) (map[string]any, error) {
	waiting, cancel, err := limited(ctx, plan.planned, "create")
	if err != nil {
		return nil, err
	}
	defer cancel()
	route := &plan.noun.Routes.Create
	request := requestOf(route, s.creation(plan.noun, plan.planned, plan.config))
	request.Path = creationPath(plan.noun, plan.planned)
	if key != "" {
		request.Key = key
	}
	defer s.hasChanged()
	answer, err := s.client.Send(ctx, request)
	if err != nil {
		return nil, err
	}
	made := value.ObjectOf(answer[plan.noun.Key])
	id := plan.noun.Address(located(plan, made))
	if id == "" {
		return nil, fmt.Errorf("the answer has no %s with an id", plan.noun.Noun)
	}
	// It is there from now on, whatever comes.
	planned := value.ObjectOf(value.Settled(plan.planned))
	state := s.attributesShown(plan.noun, made, planned, false)
	if operation := service.OperationOf(answer); operation != nil {
		if err := s.client.Wait(waiting, *operation); err != nil {
			return state, err
		}
	}
	if err := s.untilReady(waiting, plan.noun, id); err != nil {
		return state, err
	}
	if err := s.after(waiting, plan, id, state); err != nil {
		if plan.isLaterUnread() {
			// no plan would find out
			return state, err
		}
		return value.ObjectOf(planOver(plan.planned, state)), &afterwards{err, plan.noun}
	}
	read, err := s.read(ctx, plan.noun, id, planned, false)
	if err != nil {
		return value.ObjectOf(planOver(plan.planned, state)), &afterwards{err, plan.noun}
	}
	return read, nil
}

// isLaterUnread is true when something is set after the creation that no answer shows.
func (c *change) isLaterUnread() bool {
	for name, attribute := range c.noun.Attributes {
		if attribute.Later && (attribute.IsUnread() || attribute.IsSecret) && c.planned[name] != nil {
			return true
		}
	}
	return false
}

// after sets what the creation does not take.
func (s *Server) after(ctx context.Context, plan *change, id string, state map[string]any) error {
	planned := map[string]any{}
	for name, is := range state {
		planned[name] = is
	}
	isNeeded := false
	for name, attribute := range plan.noun.Attributes {
		if attribute.Later && attribute.Mode != definition.Computed && plan.planned[name] != value.Unknown {
			planned[name] = plan.planned[name]
			isNeeded = true
		}
	}
	if !isNeeded {
		return nil
	}
	later := &change{noun: plan.noun, prior: state, planned: planned, config: plan.config}
	now := &work{server: s, noun: plan.noun, id: id, now: copyOf(state), plan: later}
	return now.carryOut(ctx)
}

func copyOf(object map[string]any) map[string]any {
	copied := make(map[string]any, len(object))
	for name, each := range object {
		copied[name] = each
	}
	return copied
}

func (s *Server) update(ctx context.Context, plan *change) (map[string]any, error) {
	id := plan.noun.Address(plan.prior)
	waiting, cancel, err := limited(ctx, plan.planned, "update")
	if err != nil {
		return plan.prior, err
	}
	defer cancel()
	now := &work{server: s, noun: plan.noun, id: id, now: copyOf(plan.prior), plan: plan}
	failed := now.carryOut(waiting)
	before := value.ObjectOf(value.Settled(plan.planned))
	if failed != nil {
		before = now.now
	}
	read, err := s.read(ctx, plan.noun, id, before, false)
	switch {
	case failed != nil && err != nil:
		return now.now, failed
	case failed != nil:
		return read, failed
	case err != nil:
		return value.ObjectOf(planOver(plan.planned, now.now)), &afterwards{err, plan.noun}
	}
	return read, nil
}

// remove answers no state once the object has left.
func (s *Server) remove(ctx context.Context, plan *change) (map[string]any, error) {
	id := plan.noun.Address(plan.prior)
	waiting, cancel, err := limited(ctx, plan.prior, "delete")
	if err != nil {
		return plan.prior, err
	}
	defer cancel()
	route := &plan.noun.Routes.Remove
	if route.Path == "" {
		return nil, nil
	}
	if err := s.prepareRemoval(waiting, plan, id); service.IsGone(err) {
		return nil, nil
	} else if err != nil {
		return plan.prior, err
	}
	request := requestOf(&route.Call, nil, id)
	request.Query = url.Values{}
	for name := range plan.noun.TakeKinds {
		if said := plan.prior[name]; said != nil {
			request.Query.Set(name, queryText(said))
		}
	}
	if err := s.callRemoval(waiting, request); err != nil {
		return plan.prior, err
	}
	if err := s.untilGone(waiting, plan.noun, id); err != nil {
		return plan.prior, err
	}
	return nil, nil
}

// queryText is a value as addresses have it.
func queryText(said any) string {
	if number, isNumber := said.(float64); isNumber {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(said)
}

// prepareRemoval brings about what the deletion needs.
func (s *Server) prepareRemoval(ctx context.Context, plan *change, id string) error {
	needs := plan.noun.Routes.Remove.Needs
	if len(needs) == 0 {
		return nil
	}
	// Others may have changed it since the plan.
	now, err := s.read(ctx, plan.noun, id, plan.prior, false)
	if err != nil {
		return err
	}
	planned := copyOf(now)
	for name, needed := range needs {
		planned[name] = needed
	}
	removal := &change{noun: plan.noun, prior: now, planned: planned, config: map[string]any{}}
	return (&work{server: s, noun: plan.noun, id: id, now: now, plan: removal}).carryOut(ctx)
}
