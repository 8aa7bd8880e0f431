terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_network" "example" {
  zone   = "eu-1a"
  name   = "front"
  labels = { tier = "front" }
}
