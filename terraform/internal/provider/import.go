package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
)

// ImportResourceState takes an object over, by id, name, ZONE/NAME or identity.
func (s *Server) ImportResourceState(
	ctx context.Context, request *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	resource := s.resources[request.TypeName]
	wanted := request.ID
	if wanted == "" && request.Identity != nil {
		identity, err := objectOf(request.Identity.IdentityData, identityKind)
		if err != nil {
			return nil, err
		}
		wanted, _ = identity["id"].(string)
	}
	response := &tfprotov6.ImportResourceStateResponse{}
	id, err := s.find(ctx, resource.noun, wanted)
	if err != nil {
		response.Diagnostics = diagnosticsOf(resource.noun, "The import of "+wanted, err)
		return response, nil
	}
	state := map[string]any{"id": id}
	dynamic, err := dynamicOf(state, resource.kind)
	if err != nil {
		return nil, err
	}
	identity, err := identityOf(state)
	response.ImportedResources = []*tfprotov6.ImportedResource{{
		TypeName: request.TypeName, State: dynamic, Private: private{IsImported: true}.text(), Identity: identity,
	}}
	return response, err
}

// find answers the id of what people name.
func (s *Server) find(ctx context.Context, noun *definition.Noun, wanted string) (string, error) {
	items, err := s.list(ctx, noun, nil)
	if err != nil {
		return "", err
	}
	var found []string
	for _, item := range items {
		id, _ := item["id"].(string)
		if id == wanted {
			return id, nil
		}
		if isCalled(noun, item, wanted) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no %s with the id or name %q", noun.Noun, wanted)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d have the name %q; say one of the ids: %s", len(found), wanted, strings.Join(found, ", "))
}

// isCalled is true when people may say this of the item.
func isCalled(noun *definition.Noun, item map[string]any, wanted string) bool {
	for _, field := range noun.Names {
		name, _ := item[field].(string)
		zone, _ := item["zone"].(string)
		if name != "" && (name == wanted || zone+"/"+name == wanted) {
			return true
		}
	}
	return false
}
