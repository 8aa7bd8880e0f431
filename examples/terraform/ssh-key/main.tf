terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_ssh_key" "example" {
  name       = "laptop"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKfW0y1WQ3x8fMgmvHpsyWkBq3W1H2yj4v3mO3b2pTqI me@laptop\n"
}
