package provider

import (
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
)

const (
	prefix = "svccloud_"
	// Attributes of every resource that no noun has.
	timeouts  = "timeouts"
	labels    = "labels"
	labelsAll = "labels_all"
	// Of a secret input: a value that is in no state, and the number that says that it has changed.
	writeOnly        = "_wo"
	writeOnlyVersion = "_wo_version"
)

// Stages of a resource that people may limit.
var stages = []string{"create", "update", "delete"}

// use says what people may do with an attribute.
type use struct{ required, optional, computed bool }

func attributeOf(name string, kind *definition.Kind, use use) *tfprotov6.SchemaAttribute {
	attribute := &tfprotov6.SchemaAttribute{
		Name:            name,
		Description:     kind.Description,
		DescriptionKind: tfprotov6.StringKindPlain,
		Required:        use.required,
		Optional:        use.optional,
		Computed:        use.computed,
	}
	if nested := nestedOf(kind, use); nested != nil {
		attribute.NestedType = nested
	} else {
		attribute.Type = typeOf(kind)
	}
	return attribute
}

// nestedOf is the type of objects: their members may be left out, which plain object types do not allow.
func nestedOf(kind *definition.Kind, use use) *tfprotov6.SchemaObject {
	nesting, object := tfprotov6.SchemaObjectNestingModeSingle, kind
	switch kind.Type {
	case definition.List:
		nesting, object = tfprotov6.SchemaObjectNestingModeList, kind.Element
	case definition.Map:
		nesting, object = tfprotov6.SchemaObjectNestingModeMap, kind.Element
	}
	if object.Type != definition.Object {
		return nil
	}
	isWritten := use.required || use.optional
	nested := &tfprotov6.SchemaObject{Nesting: nesting}
	for _, name := range memberNames(object) {
		member := object.Members[name]
		inner := useOfMember(member, isWritten)
		nested.Attributes = append(nested.Attributes, attributeOf(name, member.Kind, inner))
	}
	return nested
}

func useOfMember(member *definition.Member, isWritten bool) use {
	if !isWritten {
		return use{computed: true}
	}
	return use{required: member.IsRequired, optional: !member.IsRequired, computed: !member.IsRequired}
}

func memberNames(kind *definition.Kind) []string {
	names := make([]string, 0, len(kind.Members))
	for name := range kind.Members {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// typeOf is the type of values that are no objects.
func typeOf(kind *definition.Kind) tftypes.Type {
	switch kind.Type {
	case definition.Number:
		return tftypes.Number
	case definition.Bool:
		return tftypes.Bool
	case definition.List:
		return tftypes.List{ElementType: typeOf(kind.Element)}
	case definition.Map:
		return tftypes.Map{ElementType: typeOf(kind.Element)}
	case definition.Object:
		members := map[string]tftypes.Type{}
		for name, member := range kind.Members {
			members[name] = typeOf(member.Kind)
		}
		return tftypes.Object{AttributeTypes: members}
	}
	return tftypes.String
}

// schemaOf is the schema of the resource of a noun.
func schemaOf(noun *definition.Noun) *tfprotov6.Schema {
	block := &tfprotov6.SchemaBlock{}
	for _, name := range noun.AttributeNames() {
		block.Attributes = append(block.Attributes, attributesOf(name, noun.Attributes[name])...)
	}
	if hasLabels(noun) {
		all := attributeOf(labelsAll, noun.Attributes[labels].Kind, use{computed: true})
		all.Description = "Labels with those of the provider's default_labels."
		block.Attributes = append(block.Attributes, all)
	}
	for _, name := range sortedKinds(noun.TakeKinds) {
		taken := attributeOf(name, noun.TakeKinds[name], use{optional: true})
		taken.Description = strings.TrimSpace("Taken by the deletion. " + taken.Description)
		block.Attributes = append(block.Attributes, taken)
	}
	block.Attributes = append(block.Attributes, timeoutsAttribute())
	return &tfprotov6.Schema{Block: block}
}

func attributesOf(name string, attribute *definition.Attribute) []*tfprotov6.SchemaAttribute {
	if attribute.IsSecret {
		return secretAttributes(name, attribute)
	}
	attributes := []*tfprotov6.SchemaAttribute{attributeOf(name, attribute.Kind, useOf(attribute))}
	if attribute.As != "" {
		attributes = append(attributes, &tfprotov6.SchemaAttribute{Name: attribute.As, Type: tftypes.String, Computed: true})
	}
	return attributes
}

func useOf(attribute *definition.Attribute) use {
	switch attribute.Mode {
	case definition.Required:
		return use{required: true}
	case definition.Optional:
		return use{optional: true}
	case definition.Computed:
		return use{computed: true}
	}
	return use{optional: true, computed: true}
}

func secretAttributes(name string, attribute *definition.Attribute) []*tfprotov6.SchemaAttribute {
	plain := attributeOf(name, attribute.Kind, use{optional: true})
	plain.Sensitive = true
	once := attributeOf(name+writeOnly, attribute.Kind, use{optional: true})
	once.Sensitive, once.WriteOnly = true, true
	once.Description = "As " + name + ", and in no plan or state."
	version := &tfprotov6.SchemaAttribute{
		Name: name + writeOnlyVersion, Type: tftypes.Number, Optional: true,
		Description: "Another number says that " + name + writeOnly + " has changed.",
	}
	return []*tfprotov6.SchemaAttribute{plain, once, version}
}

func timeoutsAttribute() *tfprotov6.SchemaAttribute {
	nested := &tfprotov6.SchemaObject{Nesting: tfprotov6.SchemaObjectNestingModeSingle}
	for _, stage := range stages {
		nested.Attributes = append(nested.Attributes, &tfprotov6.SchemaAttribute{
			Name: stage, Type: tftypes.String, Optional: true,
			Description: "How long operations are waited for, such as 30m; to their deadline when left out.",
		})
	}
	return &tfprotov6.SchemaAttribute{Name: timeouts, NestedType: nested, Optional: true}
}

// hasLabels is true for nouns whose labels are those of the platform: they are found by them. Others are of what runs
// inside, such as nodes.
func hasLabels(noun *definition.Noun) bool {
	attribute := noun.Attributes[labels]
	return attribute != nil && attribute.Kind.Type == definition.Map && attribute.Mode != definition.Computed &&
		slices.Contains(noun.Routes.List.Takes, "label")
}

// identitySchema is the identity of a resource: what its address says.
func identitySchema(noun *definition.Noun) *tfprotov6.ResourceIdentitySchema {
	names := []string{noun.IDField()}
	if noun.IsPart() {
		names = append(names, noun.Parent.Field)
	}
	schema := &tfprotov6.ResourceIdentitySchema{}
	for _, name := range names {
		schema.IdentityAttributes = append(schema.IdentityAttributes, &tfprotov6.ResourceIdentitySchemaAttribute{
			Name: name, Type: tftypes.String, RequiredForImport: true,
		})
	}
	return schema
}
