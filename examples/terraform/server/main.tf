terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

# A change of the plan stops the server and starts it again.
provider "svccloud" {
  allow_stopping = true
}

resource "svccloud_server" "example" {
  zone                 = "eu-1a"
  hostname             = "front"
  plan                 = "tiny"
  template             = "tiny-linux"
  ssh_key_ids          = [svccloud_ssh_key.admin.id]
  user_data_wo         = "#!/bin/sh\necho only-for-the-guest > /etc/motd\n"
  user_data_wo_version = 1

  networks = [{ network_id = svccloud_network.front.id }]

  firewall = {
    enabled = true
    rules = [
      { direction = "in", action = "accept", protocol = "tcp", port_start = 22 },
      { direction = "in", action = "accept", protocol = "tcp", port_start = 443 },
    ]
  }
}

resource "svccloud_ssh_key" "admin" {
  name       = "server-admin"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHzEI+cZXn4/cnHZX9MkBuVS/h9atGE+CFLXOHCnrJIP me@laptop"
}

resource "svccloud_network" "front" {
  zone = "eu-1a"
  name = "server-front"
}

resource "svccloud_network" "other" {
  zone = "eu-1a"
  name = "server-other"
}
