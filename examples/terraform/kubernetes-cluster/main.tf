terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_kubernetes_cluster" "example" {
  zone       = "eu-1a"
  name       = "shop"
  network_id = svccloud_network.nodes.id
}

resource "svccloud_network" "nodes" {
  zone = "eu-1a"
  name = "cluster-nodes"
}

resource "svccloud_network" "other" {
  zone = "eu-1b"
  name = "cluster-other"
}
