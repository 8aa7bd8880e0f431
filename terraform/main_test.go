package main

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/provider"
)

// Nouns that are not served yet, and why.
var withoutResource = map[string]string{
	"server_interface":          "the networks of a server keep the same",
	"load_balancer_certificate": "it is a part of a load balancer",
	"kubernetes_node_pool":      "it is a part of a cluster",
	"dev_cluster":               "it gets ready without an operation",
	"object_storage":            "its id is its zone, and nothing deletes it",
	"object_storage_bucket":     "its id is its name",
	"custom_image":              "nothing has run it: it needs a disk on the public Internet",
	"floating_ip":               "nothing has run it: the simulated network has no public addresses",
	"load_balancer":             "nothing has run it: simulated guests run none",
	"edge":                      "nothing has run it: simulated guests run none",
	"database":                  "nothing has run it: simulated guests run none",
	"kubernetes_cluster":        "nothing has run it: it needs the programs of control planes",
	"audit_sink":                "nothing has run it: it needs a collector at a public address",
}

func TestEveryNounIsServed(t *testing.T) {
	nouns, leftOut, err := definition.Parse(definitions)
	if err != nil {
		t.Fatal(err)
	}
	for noun, reason := range leftOut {
		if withoutResource[noun] == "" {
			t.Errorf("%s is left out: %s", noun, reason)
		}
	}
	for noun := range withoutResource {
		if leftOut[noun] == nil {
			t.Errorf("%s is served", noun)
		}
	}
	schemas, err := provider.New(nouns, "test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
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
