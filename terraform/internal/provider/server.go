// Package provider is the engine: it speaks the plugin protocol, and knows of nouns only what their definitions say.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// Server answers Terraform.
type Server struct {
	unused
	version   string
	resources map[string]*resource
	sources   map[string]*source
	secrets   map[string]*verb
	actions   map[string]*verb
	client    *service.Client
	settings  settings
	gathering gathering
}

// New is a provider of these nouns.
func New(nouns []*definition.Noun, version string) *Server {
	server := &Server{version: version, resources: map[string]*resource{}, sources: map[string]*source{}}
	for _, noun := range nouns {
		schema := schemaOf(noun)
		server.resources[prefix+noun.Noun] = &resource{noun: noun, schema: schema, kind: schema.ValueType()}
		for _, source := range sourcesOf(noun) {
			server.sources[source.name] = source
		}
	}
	return server
}

var capabilities = &tfprotov6.ServerCapabilities{GetProviderSchemaOptional: true, PlanDestroy: true, MoveResourceState: true}

// GetMetadata lists what there is.
func (s *Server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	response := &tfprotov6.GetMetadataResponse{ServerCapabilities: capabilities}
	for name, resource := range s.resources {
		response.Resources = append(response.Resources, tfprotov6.ResourceMetadata{TypeName: name})
		if !resource.noun.IsPart() {
			response.ListResources = append(response.ListResources, tfprotov6.ListResourceMetadata{TypeName: name})
		}
	}
	for name := range s.sources {
		response.DataSources = append(response.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	for name := range s.secrets {
		response.EphemeralResources = append(response.EphemeralResources, tfprotov6.EphemeralResourceMetadata{TypeName: name})
	}
	for name := range s.actions {
		response.Actions = append(response.Actions, tfprotov6.ActionMetadata{TypeName: name})
	}
	return response, nil
}

// GetProviderSchema has the schemas of everything.
func (s *Server) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	response := &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: capabilities,
		Provider:           settingsSchema,
		ResourceSchemas:    map[string]*tfprotov6.Schema{},
		DataSourceSchemas:  map[string]*tfprotov6.Schema{},

		EphemeralResourceSchemas: map[string]*tfprotov6.Schema{},
		ListResourceSchemas:      map[string]*tfprotov6.Schema{},
		ActionSchemas:            map[string]*tfprotov6.ActionSchema{},
	}
	for name, resource := range s.resources {
		response.ResourceSchemas[name] = resource.schema
		if !resource.noun.IsPart() {
			response.ListResourceSchemas[name] = listSchema(resource.noun)
		}
	}
	for name, secret := range s.secrets {
		response.EphemeralResourceSchemas[name] = secret.schema
	}
	for name, action := range s.actions {
		response.ActionSchemas[name] = &tfprotov6.ActionSchema{Schema: action.schema}
	}
	for name, source := range s.sources {
		response.DataSourceSchemas[name] = source.schema
	}
	return response, nil
}

// GetResourceIdentitySchemas says that the id is the identity, with that of the parent where it is a part.
func (s *Server) GetResourceIdentitySchemas(
	context.Context, *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	schemas := map[string]*tfprotov6.ResourceIdentitySchema{}
	for name, resource := range s.resources {
		schemas[name] = identitySchema(resource.noun)
	}
	return &tfprotov6.GetResourceIdentitySchemasResponse{IdentitySchemas: schemas}, nil
}

// resource is a noun as Terraform sees it.
type resource struct {
	noun   *definition.Noun
	schema *tfprotov6.Schema
	kind   tftypes.Type
}

// objectOf reads an object of the protocol; nil when it is null.
func objectOf(v *tfprotov6.DynamicValue, kind tftypes.Type) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	parsed, err := v.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	plain, err := value.FromTerraform(parsed)
	if err != nil || plain == nil || plain == value.Unknown {
		return nil, err
	}
	return value.ObjectOf(plain), nil
}

// dynamicOf makes an object of the protocol; null from nil.
func dynamicOf(object map[string]any, kind tftypes.Type) (*tfprotov6.DynamicValue, error) {
	var plain any
	if object != nil {
		plain = object
	}
	made, err := value.ToTerraform(plain, kind)
	if err != nil {
		return nil, err
	}
	dynamic, err := tfprotov6.NewDynamicValue(kind, made)
	return &dynamic, err
}

func identityKind(noun *definition.Noun) tftypes.Type { return identitySchema(noun).ValueType() }

// identityOf is the identity of an object; nil while its id is not known.
func identityOf(noun *definition.Noun, object map[string]any) (*tfprotov6.ResourceIdentityData, error) {
	address := noun.Address(object)
	if address == "" {
		return nil, nil
	}
	dynamic, err := dynamicOf(noun.Located(address), identityKind(noun))
	return &tfprotov6.ResourceIdentityData{IdentityData: dynamic}, err
}
