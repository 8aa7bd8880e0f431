package provider

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// verb is a request of people, with what they write for it.
type verb struct {
	*definition.Verb
	schema *tfprotov6.Schema
	kind   tftypes.Type
}

// Offer adds secrets that are read, as ephemeral resources, and actions.
func (s *Server) Offer(secrets, actions []*definition.Verb) {
	s.secrets, s.actions = map[string]*verb{}, map[string]*verb{}
	for _, each := range secrets {
		s.secrets[prefix+each.Name()] = verbOf(each)
	}
	for _, each := range actions {
		s.actions[prefix+each.ID] = verbOf(each)
	}
}

func verbOf(each *definition.Verb) *verb {
	schema := verbSchema(each)
	return &verb{Verb: each, schema: schema, kind: schema.ValueType()}
}

// verbSchema has the parameters of the path, what is taken, and what is shown of the answer.
func verbSchema(verb *definition.Verb) *tfprotov6.Schema {
	block := &tfprotov6.SchemaBlock{Description: verb.Summary + "."}
	written := map[string]bool{}
	add := func(name string, kind *definition.Kind, isRequired bool) {
		if written[name] {
			return
		}
		written[name] = true
		attribute := attributeOf(name, kind, use{required: isRequired, optional: !isRequired})
		block.Attributes = append(block.Attributes, onlyWritten(attribute))
	}
	for _, name := range verb.Parameters() {
		description := name + " of the " + verb.Of + "."
		if name == "id" {
			description = "Id of the " + verb.Of + "."
		}
		add(name, &definition.Kind{Type: definition.String, Description: description}, true)
	}
	for _, kinds := range []map[string]*definition.Kind{verb.Query, verb.Body} {
		for _, name := range sortedKinds(kinds) {
			add(name, kinds[name], slices.Contains(verb.Required, name))
		}
	}
	for _, name := range sortedKinds(verb.Shown) {
		if !written[name] {
			block.Attributes = append(block.Attributes, attributeOf(name, verb.Shown[name], use{computed: true}))
		}
	}
	return &tfprotov6.Schema{Block: block}
}

// onlyWritten makes no member computed: nothing is answered for what people write here.
func onlyWritten(attribute *tfprotov6.SchemaAttribute) *tfprotov6.SchemaAttribute {
	attribute.Computed = false
	if attribute.NestedType != nil {
		for _, member := range attribute.NestedType.Attributes {
			onlyWritten(member)
		}
	}
	return attribute
}

// request is what people ask for.
func (v *verb) request(config map[string]any) service.Request {
	var ids []string
	for _, name := range v.Parameters() {
		id, _ := config[name].(string)
		ids = append(ids, id)
	}
	request := service.Request{Method: v.Method, Path: fill(v.Path, ids...), Query: url.Values{}}
	for name := range v.Query {
		if config[name] != nil {
			request.Query.Set(name, queryText(config[name]))
		}
	}
	if v.Method == http.MethodGet || v.Method == http.MethodDelete {
		return request
	}
	body := map[string]any{}
	for name := range v.Body {
		if config[name] != nil {
			body[name] = value.Said(config[name])
		}
	}
	request.Body = body
	if v.Method == http.MethodPost {
		request.Key = newKey()
	}
	return request
}

// faults are what is wrong with what is written.
func (v *verb) faults(config map[string]any) []*tfprotov6.Diagnostic {
	var faults []*tfprotov6.Diagnostic
	for _, kinds := range []map[string]*definition.Kind{v.Query, v.Body} {
		for _, name := range sortedKinds(kinds) {
			if fault := faultOf(kinds[name], config[name]); fault != "" {
				faults = append(faults, refusal(name, name+" is not valid", fault))
			}
		}
	}
	return faults
}

// noun is the part of a noun that refusals need.
func (v *verb) noun() *definition.Noun {
	attributes := map[string]*definition.Attribute{}
	for _, kinds := range []map[string]*definition.Kind{v.Query, v.Body} {
		for name, kind := range kinds {
			attributes[name] = &definition.Attribute{Kind: kind}
		}
	}
	return &definition.Noun{Noun: v.Of, Attributes: attributes}
}

// ValidateEphemeralResourceConfig judges what is written without asking the service.
func (s *Server) ValidateEphemeralResourceConfig(
	_ context.Context, request *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	secret := s.secrets[request.TypeName]
	config, err := objectOf(request.Config, secret.kind)
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{Diagnostics: secret.faults(config)}, err
}

// OpenEphemeralResource reads a secret. No plan and no state has it.
func (s *Server) OpenEphemeralResource(
	ctx context.Context, request *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	secret := s.secrets[request.TypeName]
	config, err := objectOf(request.Config, secret.kind)
	if err != nil {
		return nil, err
	}
	response := &tfprotov6.OpenEphemeralResourceResponse{}
	answer, err := s.client.Send(ctx, secret.request(config))
	if err != nil {
		response.Diagnostics = diagnosticsOf(secret.noun(), "Reading "+request.TypeName, err)
		return response, nil
	}
	result := copyOf(config)
	for name, kind := range secret.Shown {
		if shown := project(kind, answer[name], nil, ""); shown != nil {
			result[name] = shown
		}
	}
	response.Result, err = dynamicOf(result, secret.kind)
	return response, err
}

// RenewEphemeralResource has nothing to do: a secret is read once, and never asked to be renewed.
func (s *Server) RenewEphemeralResource(
	context.Context, *tfprotov6.RenewEphemeralResourceRequest,
) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	return &tfprotov6.RenewEphemeralResourceResponse{}, nil
}

// CloseEphemeralResource has nothing to do: others may use the same secret.
func (s *Server) CloseEphemeralResource(
	context.Context, *tfprotov6.CloseEphemeralResourceRequest,
) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	return &tfprotov6.CloseEphemeralResourceResponse{}, nil
}

// ValidateActionConfig judges what is written without asking the service.
func (s *Server) ValidateActionConfig(
	_ context.Context, request *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	action := s.actions[request.ActionType]
	config, err := objectOf(request.Config, action.kind)
	return &tfprotov6.ValidateActionConfigResponse{Diagnostics: action.faults(config)}, err
}

// PlanAction asks the service whether it would do it now. Until then, other changes may lift a refusal.
func (s *Server) PlanAction(
	ctx context.Context, request *tfprotov6.PlanActionRequest,
) (*tfprotov6.PlanActionResponse, error) {
	action := s.actions[request.ActionType]
	config, err := objectOf(request.Config, action.kind)
	if err != nil {
		return nil, err
	}
	response := &tfprotov6.PlanActionResponse{}
	if !action.DryRun || !value.IsKnown(config) {
		return response, nil
	}
	asked := action.request(config)
	asked.Query.Set("dry_run", "true")
	asked.Key = ""
	response.Diagnostics = s.ask(ctx, &change{noun: action.noun()}, action.Summary, asked)
	for _, diagnostic := range response.Diagnostics {
		diagnostic.Severity = tfprotov6.DiagnosticSeverityWarning
	}
	return response, nil
}

// InvokeAction does it, and waits for its operation.
func (s *Server) InvokeAction(
	ctx context.Context, request *tfprotov6.InvokeActionRequest,
) (*tfprotov6.InvokeActionServerStream, error) {
	action := s.actions[request.ActionType]
	config, err := objectOf(request.Config, action.kind)
	if err != nil {
		return nil, err
	}
	return &tfprotov6.InvokeActionServerStream{Events: func(push func(tfprotov6.InvokeActionEvent) bool) {
		push(tfprotov6.InvokeActionEvent{Type: tfprotov6.ProgressInvokeActionEventType{Message: action.Summary}})
		completed := tfprotov6.CompletedInvokeActionEventType{}
		// an interrupt ends no wait
		if _, err := s.call(context.WithoutCancel(ctx), action.request(config)); err != nil {
			completed.Diagnostics = diagnosticsOf(action.noun(), request.ActionType, err)
		}
		push(tfprotov6.InvokeActionEvent{Type: completed})
	}}, nil
}
