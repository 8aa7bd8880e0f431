terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_dev_cluster" "example" {
  zone        = "eu-1a"
  name        = "play"
  plan        = "starter-2c-4g"
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}

resource "svccloud_ssh_key" "admin" {
  name       = "dev-admin"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9d3c5a7F1h2J4l6N8p0R2t4V6x8Z0b2D4f6H8j0L2n me@laptop"
}

resource "svccloud_ssh_key" "other" {
  name       = "dev-other"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC8e4g6b8G2i3K5m7O9q1S3u5W7y9A1c3E5g7I9k1M3o other@laptop"
}

resource "svccloud_network" "inner" {
  zone = "eu-1a"
  name = "dev-inner"
}
