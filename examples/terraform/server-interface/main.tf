terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_server_interface" "example" {
  server_id  = svccloud_server.front.id
  network_id = svccloud_network.front.id
}

# Its networks are left out: the interfaces are resources of their own.
resource "svccloud_server" "front" {
  zone        = "eu-1a"
  hostname    = "interface-front"
  plan        = "tiny"
  template    = "tiny-linux"
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}

resource "svccloud_server" "other" {
  zone        = "eu-1a"
  hostname    = "interface-other"
  plan        = "tiny"
  template    = "tiny-linux"
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}

resource "svccloud_ssh_key" "admin" {
  name       = "interface-admin"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKq3v7d1m5o8Y2w4Zt6c9x0B1n3L5g7H9j2F4k6P8r0S me@laptop"
}

resource "svccloud_network" "front" {
  zone      = "eu-1a"
  name      = "interface-front"
  ipv4_cidr = "10.50.0.0/24"
}

resource "svccloud_network" "other" {
  zone = "eu-1a"
  name = "interface-other"
}
