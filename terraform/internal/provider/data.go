package provider

import (
	"context"
	"fmt"
	"net/url"
	"sort"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

const (
	// Attributes by which data sources choose.
	withLabels = "with_labels"
	newest     = "newest"
	zone       = "zone"
	// The most that a page has.
	pageSize = "100"
)

// source is a data source: one object of a noun, or many.
type source struct {
	name   string
	noun   *definition.Noun
	isMany bool
	schema *tfprotov6.Schema
}

// sourcesOf are the data sources of a noun; a part is found by what it is a part of.
func sourcesOf(noun *definition.Noun) []*source {
	if noun.IsPart() {
		return nil
	}
	return []*source{
		{name: prefix + noun.Noun, noun: noun, schema: oneSchema(noun)},
		{name: prefix + noun.Plural(), noun: noun, isMany: true, schema: manySchema(noun)},
	}
}

// shownKinds are what a list shows of a noun, moments included.
func shownKinds(noun *definition.Noun) map[string]*definition.Kind {
	kinds := map[string]*definition.Kind{}
	for name, attribute := range noun.Attributes {
		switch {
		case attribute.IsUnread(), attribute.IsSecret, noun.ReadApart(name) != nil:
		case attribute.IsPresence():
			kinds[name] = &definition.Kind{Type: definition.Bool, Description: attribute.Kind.Description}
			kinds[attribute.As] = &definition.Kind{Type: definition.String}
		default:
			kinds[name] = attribute.Kind
		}
	}
	for name, kind := range noun.MomentKinds {
		kinds[name] = kind
	}
	return kinds
}

func sortedKinds(kinds map[string]*definition.Kind) []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// choosing are the attributes of a noun by which people may choose.
func choosing(noun *definition.Noun) map[string]bool {
	names := map[string]bool{"id": true}
	for _, name := range noun.Names {
		names[name] = true
	}
	if noun.Attributes[zone] != nil {
		names[zone] = true
	}
	return names
}

func labelsChoice() *tfprotov6.SchemaAttribute {
	return &tfprotov6.SchemaAttribute{
		Name: withLabels, Type: tftypes.Map{ElementType: tftypes.String}, Optional: true,
		Description: "Only objects that have all of these labels.",
	}
}

func oneSchema(noun *definition.Noun) *tfprotov6.Schema {
	block := &tfprotov6.SchemaBlock{}
	kinds, chosen := shownKinds(noun), choosing(noun)
	for _, name := range sortedKinds(kinds) {
		block.Attributes = append(block.Attributes, attributeOf(name, kinds[name], use{optional: chosen[name], computed: true}))
	}
	if hasLabels(noun) {
		block.Attributes = append(block.Attributes, labelsChoice())
	}
	block.Attributes = append(block.Attributes, &tfprotov6.SchemaAttribute{
		Name: newest, Type: tftypes.Bool, Optional: true,
		Description: "Whether the newest is meant when several are found; they are refused otherwise.",
	})
	return &tfprotov6.Schema{Block: block}
}

func manySchema(noun *definition.Noun) *tfprotov6.Schema {
	members := map[string]*definition.Member{}
	for name, kind := range shownKinds(noun) {
		members[name] = &definition.Member{Kind: kind}
	}
	items := &definition.Kind{
		Type: definition.List, Element: &definition.Kind{Type: definition.Object, Members: members}, Description: "Newest first.",
	}
	ids := &definition.Kind{Type: definition.List, Element: &definition.Kind{Type: definition.String}}
	block := &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
		attributeOf("ids", ids, use{computed: true}), attributeOf(noun.Plural(), items, use{computed: true}),
	}}
	if noun.Attributes[zone] != nil {
		block.Attributes = append(block.Attributes, attributeOf(zone, noun.Attributes[zone].Kind, use{optional: true}))
	}
	if hasLabels(noun) {
		block.Attributes = append(block.Attributes, labelsChoice())
	}
	return &tfprotov6.Schema{Block: block}
}

// ValidateDataResourceConfig accepts what the schema accepts.
func (s *Server) ValidateDataResourceConfig(
	context.Context, *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

// ReadDataSource finds objects.
func (s *Server) ReadDataSource(
	ctx context.Context, request *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	source := s.sources[request.TypeName]
	kind := source.schema.ValueType()
	config, err := objectOf(request.Config, kind)
	if err != nil {
		return nil, err
	}
	response := &tfprotov6.ReadDataSourceResponse{}
	found, err := s.search(ctx, source.noun, config)
	if err != nil {
		response.Diagnostics = diagnosticsOf(source.noun, "Reading "+request.TypeName, err)
		return response, nil
	}
	state := copyOf(config)
	if source.isMany {
		ids, items := []any{}, []any{}
		for _, each := range found {
			ids, items = append(ids, each[source.noun.IDField()]), append(items, each)
		}
		state["ids"], state[source.noun.Plural()] = ids, items
	} else {
		one, err := oneOf(source.noun, found, config)
		if err != nil {
			response.Diagnostics = diagnosticsOf(source.noun, "Reading "+request.TypeName, err)
			return response, nil
		}
		for name, each := range one {
			state[name] = each
		}
	}
	response.State, err = dynamicOf(state, kind)
	return response, err
}

// search answers the objects that are as the configuration says, newest first, with what a list shows of them.
func (s *Server) search(ctx context.Context, noun *definition.Noun, config map[string]any) ([]map[string]any, error) {
	items, err := s.list(ctx, noun, config)
	if err != nil {
		return nil, err
	}
	kinds := shownKinds(noun)
	var found []map[string]any
	for _, item := range items {
		shown := s.sourceShown(noun, item)
		if !isMeant(noun, shown, config) {
			continue
		}
		if !noun.Routes.List.Whole {
			// its items lack members
			id, _ := item[noun.IDField()].(string)
			whole, err := s.readOwn(ctx, noun, id)
			if service.IsGone(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			shown = s.sourceShown(noun, whole)
		}
		found = append(found, onlyShown(kinds, shown))
	}
	return found, nil
}

// sourceShown is what a data source shows of an object.
func (s *Server) sourceShown(noun *definition.Noun, item map[string]any) map[string]any {
	shown := s.attributesShown(noun, item, map[string]any{}, true)
	for name := range noun.MomentKinds {
		shown[name] = item[name]
	}
	if hasLabels(noun) {
		shown[labels] = shown[labelsAll]
	}
	return shown
}

// isMeant is true for an object that is as the configuration says.
func isMeant(noun *definition.Noun, shown, config map[string]any) bool {
	for name := range choosing(noun) {
		if config[name] != nil && config[name] != shown[name] {
			return false
		}
	}
	return agrees(config[withLabels], shown[labels])
}

func onlyShown(kinds map[string]*definition.Kind, shown map[string]any) map[string]any {
	only := map[string]any{}
	for name, kind := range kinds {
		only[name] = project(kind, shown[name], nil, "")
	}
	return only
}

func oneOf(noun *definition.Noun, found []map[string]any, config map[string]any) (map[string]any, error) {
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("there is no such %s", noun.Noun)
	case len(found) > 1 && config[newest] != true:
		return nil, fmt.Errorf("%d are so; say more, or newest = true", len(found))
	}
	return found[0], nil
}

// list answers a complete list; what it can choose by itself, it does.
func (s *Server) list(ctx context.Context, noun *definition.Noun, config map[string]any) ([]map[string]any, error) {
	query := url.Values{}
	for _, taken := range noun.Routes.List.Takes {
		switch taken {
		case "limit":
			query.Set(taken, pageSize)
		case zone:
			if in, isText := config[zone].(string); isText {
				query.Set(taken, in)
			}
		case "label":
			for name, text := range value.ObjectOf(config[withLabels]) {
				query.Add(taken, fmt.Sprintf("%s=%v", name, text))
			}
		}
	}
	return s.client.Items(ctx, noun.Routes.List.Path, query)
}
