terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_server_group" "example" {
  name = "front"
  zone = "eu-1a"
}
