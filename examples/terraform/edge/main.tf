terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_edge" "example" {
  network_id  = svccloud_network.inner.id
  name        = "gate"
  roles       = ["bastion"]
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}

resource "svccloud_ssh_key" "admin" {
  name       = "edge-admin"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMz5s4rW8xwqg0L0R0oTn1sO8lV3k1u9B0m3x3K0a7Zt me@laptop"
}

resource "svccloud_ssh_key" "other" {
  name       = "edge-other"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF6yq8ZJ2p5xvN0cA7fT0oKk1tY5sW4u3R2e1D9b8X7c other@laptop"
}

resource "svccloud_network" "inner" {
  zone      = "eu-1a"
  name      = "edge-inner"
  ipv4_cidr = "10.30.0.0/24"
}

resource "svccloud_network" "other" {
  zone = "eu-1a"
  name = "edge-other"
}
