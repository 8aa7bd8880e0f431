terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

provider "svccloud" {
  default_labels = { project = "shop" }
}

locals {
  zone = "eu-1a"
}

resource "svccloud_network" "shop" {
  zone      = local.zone
  name      = "shop"
  ipv4_cidr = "10.40.0.0/24"
}

resource "svccloud_ssh_key" "admin" {
  name       = "shop-admin"
  public_key = file("key.pub")
}

resource "svccloud_server" "web" {
  count       = 3
  zone        = local.zone
  hostname    = "web-${count.index + 1}"
  plan        = "tiny"
  template    = "tiny-linux"
  ssh_key_ids = [svccloud_ssh_key.admin.id]
  networks    = [{ network_id = svccloud_network.shop.id }]
}

resource "svccloud_load_balancer" "entrance" {
  zone       = local.zone
  name       = "entrance"
  network_id = svccloud_network.shop.id

  backends = [{
    name = "web"
    members = [for server in svccloud_server.web : {
      name    = server.hostname
      address = server.networks[0].ipv4_address
      port    = 8080
    }]
  }]

  frontends = [{ name = "http", port = 80, mode = "http", backend = "web" }]
}

resource "svccloud_database" "orders" {
  zone            = local.zone
  name            = "shop-orders"
  network_id      = svccloud_network.shop.id
  database_name   = "orders"
  backup_schedule = "0 3 * * *"
}

resource "svccloud_kubernetes_cluster" "jobs" {
  zone       = local.zone
  name       = "shop-jobs"
  network_id = svccloud_network.shop.id
}

resource "svccloud_kubernetes_node_pool" "workers" {
  cluster_id = svccloud_kubernetes_cluster.jobs.id
  name       = "workers"
  plan       = "starter-2c-4g"
  node_count = 1
}
