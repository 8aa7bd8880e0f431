package main

import (
	"context"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/provider"
)

func TestEveryNounIsServed(t *testing.T) {
	nouns, leftOut, err := definition.Parse(definitions)
	if err != nil {
		t.Fatal(err)
	}
	for noun, reason := range leftOut {
		t.Errorf("%s is left out: %s", noun, reason)
	}
	schemas, err := provider.New(nouns, "test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	reserved := []string{"connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"}
	for name, schema := range schemas.ResourceSchemas {
		for _, attribute := range schema.Block.Attributes {
			if slices.Contains(reserved, attribute.Name) {
				t.Errorf("no configuration can write %s of %s", attribute.Name, name)
			}
		}
	}
	for _, noun := range nouns {
		if schemas.ResourceSchemas["svccloud_"+noun.Noun] == nil {
			t.Errorf("there is no resource for %s", noun.Noun)
		}
	}
	for _, attribute := range schemas.ResourceSchemas["svccloud_server"].Block.Attributes {
		if attribute.Name == "delete_storages" {
			t.Error("a server is deleted with storages that are resources")
		}
	}
}
