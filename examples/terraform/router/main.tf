terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_router" "example" {
  zone        = "eu-1a"
  name        = "inner"
  network_ids = [svccloud_network.front.id, svccloud_network.back.id]
}

resource "svccloud_network" "front" {
  zone = "eu-1a"
  name = "router-front"
}

resource "svccloud_network" "back" {
  zone = "eu-1a"
  name = "router-back"
}
