package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

// UpgradeResourceIdentity keeps the id.
func (s *Server) UpgradeResourceIdentity(
	_ context.Context, request *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	identity, err := request.RawIdentity.Unmarshal(identityKind)
	if err != nil {
		return nil, err
	}
	dynamic, err := tfprotov6.NewDynamicValue(identityKind, identity)
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
	id, _ := before["id"].(string)
	state, err := s.readAfter(ctx, resource.noun, id, before, isFresh(before), false)
	switch {
	case service.IsGone(err):
		state = nil
	case err != nil:
		response.NewState = request.CurrentState
		response.Diagnostics = diagnosticsOf(resource.noun, "Reading "+nameOf(resource.noun, before), err)
		return response, nil
	default:
		if response.NewIdentity, err = identityOf(state); err != nil {
			return nil, err
		}
	}
	response.NewState, err = dynamicOf(state, resource.kind)
	return response, err
}

// isFresh is true for a state that an import made: it has the id, and nothing else.
func isFresh(state map[string]any) bool {
	for name, each := range state {
		if name != "id" && each != nil {
			return false
		}
	}
	return true
}
