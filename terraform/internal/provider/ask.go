package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

var dryRun = url.Values{"dry_run": {"true"}}

// askCreation asks the service whether it would create this. What is known after other changes only cannot be asked.
func (s *Server) askCreation(ctx context.Context, plan *change) []*tfprotov6.Diagnostic {
	for name, attribute := range plan.noun.Attributes {
		if plan.config[name] != nil && !value.IsKnown(plan.config[name]) && !attribute.Later {
			return nil
		}
	}
	if plan.noun.Routes.Create.NoDryRun {
		return nil
	}
	return s.ask(ctx, plan, "The creation", service.Request{
		Method: plan.noun.Routes.Create.Method, Path: creationPath(plan.noun, plan.planned),
		Query: dryRun, Body: s.creation(plan.noun, plan.planned, plan.config),
	})
}

// askChange asks the service about the first request; those after it depend on it.
func (s *Server) askChange(ctx context.Context, plan *change) []*tfprotov6.Diagnostic {
	id := plan.noun.Address(plan.prior)
	work := &work{server: s, noun: plan.noun, id: id, now: plan.prior, plan: plan}
	for _, step := range plan.steps() {
		if len(step.Needs) > 0 || step.Each != "" || work.bringsAboutNull(step) != nil {
			return nil
		}
		for name := range step.Sets {
			if !value.IsKnown(wishSent(plan.noun, name, plan.planned, plan.config)) {
				return nil
			}
		}
		request, isNeeded := work.request(step)
		if !isNeeded {
			continue
		}
		if step.By.NoDryRun {
			return nil
		}
		request.Query = dryRun
		return s.ask(ctx, plan, "The change", request)
	}
	return nil
}

// ask is a dry run. A refusal that other changes of the same plan may lift is a warning.
func (s *Server) ask(
	ctx context.Context, plan *change, doing string, request service.Request,
) []*tfprotov6.Diagnostic {
	if !s.settings.dryRun || s.client == nil {
		return nil
	}
	_, err := s.client.Send(ctx, request)
	var problem *service.Problem
	if err == nil || !errors.As(err, &problem) {
		// the apply says so if it is still so
		return nil
	}
	diagnostics := refusals(plan.noun, fmt.Sprintf("%s would be refused: %s", doing, problem.Title), problem)
	switch problem.Status {
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusServiceUnavailable:
		for _, diagnostic := range diagnostics {
			diagnostic.Severity = tfprotov6.DiagnosticSeverityWarning
			diagnostic.Detail += "\nAn apply now would end so, unless another change of the plan comes before it."
		}
	}
	return diagnostics
}
