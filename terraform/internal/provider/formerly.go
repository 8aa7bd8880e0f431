package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The name of this provider at every registry.
const providerName = "/svccloud/svccloud"

// UpgradeResourceState reads the state of an older release: attributes that have another name now are renamed, those
// that have left are dropped, new ones are null.
func (s *Server) UpgradeResourceState(
	_ context.Context, request *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	state, err := s.resources[request.TypeName].upgraded(request.RawState)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: state}, err
}

// MoveResourceState takes over the state of a type that has another name now.
func (s *Server) MoveResourceState(
	_ context.Context, request *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	resource := s.resources[request.TargetTypeName]
	wasNoun := strings.TrimPrefix(request.SourceTypeName, prefix)
	isOurs := strings.HasSuffix(request.SourceProviderAddress, providerName)
	if !isOurs || !slices.Contains(resource.noun.Formerly, wasNoun) {
		return &tfprotov6.MoveResourceStateResponse{Diagnostics: []*tfprotov6.Diagnostic{refusal("",
			"This cannot be moved", fmt.Sprintf("%s does not become %s.", request.SourceTypeName, request.TargetTypeName))}}, nil
	}
	state, err := resource.upgraded(request.SourceState)
	if err != nil {
		return nil, err
	}
	object, err := objectOf(state, resource.kind)
	if err != nil {
		return nil, err
	}
	identity, err := identityOf(resource.noun, object)
	return &tfprotov6.MoveResourceStateResponse{
		TargetState: state, TargetPrivate: request.SourcePrivate, TargetIdentity: identity,
	}, err
}

func (r *resource) upgraded(raw *tfprotov6.RawState) (*tfprotov6.DynamicValue, error) {
	renamed := *raw
	if len(raw.JSON) > 0 {
		var attributes map[string]json.RawMessage
		if err := json.Unmarshal(raw.JSON, &attributes); err != nil {
			return nil, err
		}
		r.rename(attributes)
		var err error
		if renamed.JSON, err = json.Marshal(attributes); err != nil {
			return nil, err
		}
	}
	options := tfprotov6.UnmarshalOpts{ValueFromJSONOpts: tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true}}
	state, err := renamed.UnmarshalWithOpts(r.kind, options)
	if err != nil {
		return nil, err
	}
	dynamic, err := tfprotov6.NewDynamicValue(r.kind, state)
	return &dynamic, err
}

// rename gives attributes the names that they have now.
func (r *resource) rename(attributes map[string]json.RawMessage) {
	for name, attribute := range r.noun.Attributes {
		for _, was := range attribute.Formerly {
			for _, end := range []string{"", writeOnly, writeOnlyVersion} {
				older, isThere := attributes[was+end]
				if _, isKnown := attributes[name+end]; isThere && !isKnown {
					attributes[name+end] = older
				}
			}
		}
	}
}
