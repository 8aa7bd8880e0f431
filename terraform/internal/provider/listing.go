package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

// listSchema is what people may say of the objects that they look for.
func listSchema(noun *definition.Noun) *tfprotov6.Schema {
	block := &tfprotov6.SchemaBlock{}
	for _, name := range append(append([]string{}, noun.Names...), zone) {
		if attribute := noun.Attributes[name]; attribute != nil {
			block.Attributes = append(block.Attributes, onlyWritten(attributeOf(name, attribute.Kind, use{optional: true})))
		}
	}
	if hasLabels(noun) {
		block.Attributes = append(block.Attributes, labelsChoice())
	}
	return &tfprotov6.Schema{Block: block}
}

// ValidateListResourceConfig accepts what the schema accepts.
func (s *Server) ValidateListResourceConfig(
	context.Context, *tfprotov6.ValidateListResourceConfigRequest,
) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return &tfprotov6.ValidateListResourceConfigResponse{}, nil
}

// ListResource finds objects that may be imported, newest first.
func (s *Server) ListResource(
	ctx context.Context, request *tfprotov6.ListResourceRequest,
) (*tfprotov6.ListResourceServerStream, error) {
	resource := s.resources[request.TypeName]
	config, err := objectOf(request.Config, listSchema(resource.noun).ValueType())
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ListResourceServerStream{Results: func(push func(tfprotov6.ListResourceResult) bool) {
		fail := func(err error) {
			push(tfprotov6.ListResourceResult{Diagnostics: diagnosticsOf(resource.noun, "Listing "+request.TypeName, err)})
		}
		items, err := s.list(ctx, resource.noun, config)
		if err != nil {
			fail(err)
			return
		}
		var count int64
		for _, item := range items {
			if request.Limit > 0 && count >= request.Limit {
				return
			}
			if !isMeant(resource.noun, s.sourceShown(resource.noun, item), config) {
				continue
			}
			found, err := s.foundItem(ctx, resource, item, request.IncludeResource)
			switch {
			case service.IsGone(err):
				continue
			case err != nil:
				fail(err)
				return
			}
			if !push(*found) {
				return
			}
			count++
		}
	}}, nil
}

// foundItem is an item of a list, complete where that is asked for.
func (s *Server) foundItem(
	ctx context.Context, resource *resource, item map[string]any, isComplete bool,
) (*tfprotov6.ListResourceResult, error) {
	identity, err := identityOf(resource.noun, item)
	if err != nil {
		return nil, err
	}
	found := &tfprotov6.ListResourceResult{DisplayName: nameOf(resource.noun, item), Identity: identity}
	if !isComplete {
		return found, nil
	}
	state, err := s.readAfter(ctx, resource.noun, resource.noun.Address(item), map[string]any{}, true, false)
	if err != nil {
		return nil, err
	}
	found.Resource, err = dynamicOf(state, resource.kind)
	return found, err
}
