terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_kubernetes_node_pool" "example" {
  cluster_id = svccloud_kubernetes_cluster.shop.id
  name       = "workers"
  plan       = "starter-2c-4g"
  node_count = 1
}

resource "svccloud_kubernetes_cluster" "shop" {
  zone       = "eu-1a"
  name       = "pool-shop"
  network_id = svccloud_network.nodes.id
}

resource "svccloud_network" "nodes" {
  zone = "eu-1a"
  name = "pool-nodes"
}
