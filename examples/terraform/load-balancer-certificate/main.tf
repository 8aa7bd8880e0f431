terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

# A frontend of mode https names the id of the certificate once this is applied.
resource "svccloud_load_balancer_certificate" "example" {
  load_balancer_id       = svccloud_load_balancer.entrance.id
  name                   = "shop"
  certificate            = file("shop.pem")
  private_key_wo         = file("shop-key.pem")
  private_key_wo_version = 1

  lifecycle {
    create_before_destroy = true
  }
}

resource "svccloud_load_balancer" "entrance" {
  zone       = "eu-1a"
  name       = "certificate-entrance"
  network_id = svccloud_network.front.id
}

resource "svccloud_network" "front" {
  zone = "eu-1a"
  name = "certificate-front"
}
