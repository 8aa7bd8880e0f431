// Command terraform-provider-svccloud is the provider of svccloud for Terraform and OpenTofu. What it offers follows
// from the definitions of nouns that the platform generates; no noun is written here.
package main

import (
	_ "embed"
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/provider"
)

// definitions is a copy of test/golden/definitions.json, which `npm run build:terraform` makes.
//
//go:embed definitions.json
var definitions []byte

// version is set by the build.
var version = "dev"

const address = "registry.terraform.io/svccloud/svccloud"

func main() {
	nouns, _, err := definition.Parse(definitions)
	if err != nil {
		log.Fatal(err)
	}
	secrets, actions, err := definition.ParseVerbs(definitions, nouns)
	if err != nil {
		log.Fatal(err)
	}
	serve := func() tfprotov6.ProviderServer {
		server := provider.New(nouns, version)
		server.Offer(secrets, actions)
		return server
	}
	if err := tf6server.Serve(address, serve); err != nil {
		log.Fatal(err)
	}
}
