terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_load_balancer" "example" {
  zone       = "eu-1a"
  name       = "entrance"
  network_id = svccloud_network.front.id

  backends = [{
    name         = "web"
    health_check = { type = "http", path = "/health" }
    members = [
      { name = "first", address = "10.20.0.11", port = 8080 },
      { name = "second", address = "10.20.0.12", port = 8080, weight = 50 },
    ]
  }]

  frontends = [{ name = "http", port = 80, mode = "http", backend = "web" }]
}

resource "svccloud_network" "front" {
  zone      = "eu-1a"
  name      = "load-balancer-front"
  ipv4_cidr = "10.20.0.0/24"
}

resource "svccloud_network" "other" {
  zone      = "eu-1b"
  name      = "load-balancer-other"
  ipv4_cidr = "10.20.0.0/24"
}
