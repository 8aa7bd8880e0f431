package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

// UpgradeResourceIdentity keeps the id.
func (s *Server) UpgradeResourceIdentity(
	_ context.Context, request *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	kind := identityKind(s.resources[request.TypeName].noun)
	identity, err := request.RawIdentity.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	dynamic, err := tfprotov6.NewDynamicValue(kind, identity)
	return &tfprotov6.UpgradeResourceIdentityResponse{
		UpgradedIdentity: &tfprotov6.ResourceIdentityData{IdentityData: &dynamic},
	}, err
}

// ReadResource reads an object as it is now.
func (s *Server) ReadResource(
	ctx context.Context, request *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	resource := s.resources[request.TypeName]
	before, err := objectOf(request.CurrentState, resource.kind)
	if err != nil {
		return nil, err
	}
	response := &tfprotov6.ReadResourceResponse{Private: request.Private, NewIdentity: request.CurrentIdentity}
	state, err := s.readAfter(
		ctx, resource.noun, resource.noun.Address(before), before, isFresh(resource.noun, before), false)
	switch {
	case service.IsGone(err):
		state = nil
	case err != nil:
		response.NewState = request.CurrentState
		response.Diagnostics = diagnosticsOf(resource.noun, "Reading "+nameOf(resource.noun, before), err)
		return response, nil
	default:
		if response.NewIdentity, err = identityOf(resource.noun, state); err != nil {
			return nil, err
		}
	}
	response.NewState, err = dynamicOf(state, resource.kind)
	return response, err
}

// isFresh is true for a state that an import made: it has what the address says, and nothing else.
func isFresh(noun *definition.Noun, state map[string]any) bool {
	located := noun.Located(noun.Address(state))
	for name, each := range state {
		if located[name] == nil && each != nil {
			return false
		}
	}
	return true
}
