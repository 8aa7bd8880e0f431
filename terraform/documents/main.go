// Command documents writes a page for everything that the provider offers, as registries show them: from the schemas, so
// that no page has to be kept.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/provider"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: documents DEFINITIONS EXAMPLES FOLDER")
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

// page is that of one schema.
type page struct {
	folder, name, kind string
	schema             *tfprotov6.Schema
}

func write(definitions, examples, folder string) error {
	text, err := os.ReadFile(definitions)
	if err != nil {
		return err
	}
	nouns, _, err := definition.Parse(text)
	if err != nil {
		return err
	}
	secrets, actions, err := definition.ParseVerbs(text, nouns)
	if err != nil {
		return err
	}
	server := provider.New(nouns, "documents")
	server.Offer(secrets, actions)
	schemas, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return err
	}
	for _, each := range pagesOf(schemas) {
		path := filepath.Join(folder, each.folder)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		name := strings.TrimPrefix(each.name, "svccloud_")
		content := each.text(exampleOf(examples, each, name))
		if err := os.WriteFile(filepath.Join(path, name+".md"), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func pagesOf(schemas *tfprotov6.GetProviderSchemaResponse) []page {
	var pages []page
	add := func(folder, kind string, all map[string]*tfprotov6.Schema) {
		for name, schema := range all {
			pages = append(pages, page{folder, name, kind, schema})
		}
	}
	add("resources", "Resource", schemas.ResourceSchemas)
	add("data-sources", "Data source", schemas.DataSourceSchemas)
	add("ephemeral-resources", "Ephemeral resource", schemas.EphemeralResourceSchemas)
	add("list-resources", "List resource", schemas.ListResourceSchemas)
	actions := map[string]*tfprotov6.Schema{}
	for name, action := range schemas.ActionSchemas {
		actions[name] = action.Schema
	}
	add("actions", "Action", actions)
	return pages
}

// exampleOf is the configuration that tests apply; empty where there is none.
func exampleOf(examples string, of page, name string) string {
	if of.folder != "resources" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(examples, strings.ReplaceAll(name, "_", "-"), "main.tf"))
	if err != nil {
		return ""
	}
	return string(text)
}

func (p page) text(example string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "---\npage_title: %q\nsubcategory: \"\"\n---\n\n# %s (%s)\n\n", p.name, p.name, p.kind)
	if p.schema.Block.Description != "" {
		fmt.Fprintf(&out, "%s\n\n", p.schema.Block.Description)
	}
	if example != "" {
		fmt.Fprintf(&out, "## Example\n\n```terraform\n%s```\n\n", example)
	}
	for _, group := range []struct {
		title string
		has   func(*tfprotov6.SchemaAttribute) bool
	}{
		{"Required", func(a *tfprotov6.SchemaAttribute) bool { return a.Required }},
		{"Optional", func(a *tfprotov6.SchemaAttribute) bool { return a.Optional }},
		{"Read-only", func(a *tfprotov6.SchemaAttribute) bool { return a.Computed && !a.Optional }},
	} {
		writeGroup(&out, group.title, p.schema.Block.Attributes, group.has)
	}
	if p.folder == "resources" {
		fmt.Fprintf(&out, "## Import\n\n```sh\nterraform import %s.example ID\n```\n", p.name)
	}
	return out.String()
}

func writeGroup(
	out *strings.Builder, title string, attributes []*tfprotov6.SchemaAttribute,
	has func(*tfprotov6.SchemaAttribute) bool,
) {
	var own []*tfprotov6.SchemaAttribute
	for _, attribute := range attributes {
		if has(attribute) {
			own = append(own, attribute)
		}
	}
	if len(own) == 0 {
		return
	}
	sort.Slice(own, func(one, other int) bool { return own[one].Name < own[other].Name })
	fmt.Fprintf(out, "## %s\n\n", title)
	for _, attribute := range own {
		writeAttribute(out, attribute, "")
	}
	out.WriteString("\n")
}

func writeAttribute(out *strings.Builder, attribute *tfprotov6.SchemaAttribute, indent string) {
	fmt.Fprintf(out, "%s- `%s` (%s)", indent, attribute.Name, typeOf(attribute))
	if attribute.Description != "" {
		fmt.Fprintf(out, " %s", strings.ReplaceAll(attribute.Description, "\n", " "))
	}
	out.WriteString("\n")
	if attribute.NestedType == nil {
		return
	}
	for _, member := range attribute.NestedType.Attributes {
		writeAttribute(out, member, indent+"  ")
	}
}

func typeOf(attribute *tfprotov6.SchemaAttribute) string {
	words := []string{}
	switch {
	case attribute.NestedType == nil:
		words = append(words, strings.ToLower(strings.ReplaceAll(attribute.Type.String(), "tftypes.", "")))
	case attribute.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeList:
		words = append(words, "list of objects")
	case attribute.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeMap:
		words = append(words, "map of objects")
	default:
		words = append(words, "object")
	}
	if attribute.Sensitive {
		words = append(words, "sensitive")
	}
	if attribute.WriteOnly {
		words = append(words, "write-only")
	}
	return strings.Join(words, ", ")
}
