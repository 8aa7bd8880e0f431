terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_floating_ip" "example" {
  zone      = "eu-1a"
  server_id = svccloud_server.first.id
}

resource "svccloud_ssh_key" "admin" {
  name       = "floating-admin"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7Yz1Hq0GzJmLr0pV3W5mJ2t1pQ9b6cX8fKdNwRvUeS me@laptop"
}

resource "svccloud_server" "first" {
  zone        = "eu-1a"
  hostname    = "floating-first"
  plan        = "tiny"
  template    = "tiny-linux"
  public_ipv4 = true
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}

resource "svccloud_server" "second" {
  zone        = "eu-1a"
  hostname    = "floating-second"
  plan        = "tiny"
  template    = "tiny-linux"
  public_ipv4 = true
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}
