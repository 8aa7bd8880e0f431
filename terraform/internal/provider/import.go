package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
)

// ImportResourceState takes an object over, by id, name, ZONE/NAME or identity; a part by PARENT/PART, each by the same.
func (s *Server) ImportResourceState(
	ctx context.Context, request *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	resource := s.resources[request.TypeName]
	wanted := request.ID
	if wanted == "" && request.Identity != nil {
		identity, err := objectOf(request.Identity.IdentityData, identityKind(resource.noun))
		if err != nil {
			return nil, err
		}
		wanted = resource.noun.Address(identity)
	}
	response := &tfprotov6.ImportResourceStateResponse{}
	address, err := s.find(ctx, resource.noun, wanted)
	if err != nil {
		response.Diagnostics = diagnosticsOf(resource.noun, "The import of "+wanted, err)
		return response, nil
	}
	state := resource.noun.Located(address)
	dynamic, err := dynamicOf(state, resource.kind)
	if err != nil {
		return nil, err
	}
	identity, err := identityOf(resource.noun, state)
	response.ImportedResources = []*tfprotov6.ImportedResource{{
		TypeName: request.TypeName, State: dynamic, Private: private{IsImported: true}.text(), Identity: identity,
	}}
	return response, err
}

// find answers the address of what people name.
func (s *Server) find(ctx context.Context, noun *definition.Noun, wanted string) (string, error) {
	if noun.IsPart() {
		return s.findPart(ctx, noun, wanted)
	}
	items, err := s.list(ctx, noun, nil)
	if err != nil {
		return "", err
	}
	return theOne(noun, items, wanted)
}

// theOne answers the id of the one that is meant.
func theOne(noun *definition.Noun, items []map[string]any, wanted string) (string, error) {
	var found []string
	for _, item := range items {
		id, _ := item[noun.IDField()].(string)
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
