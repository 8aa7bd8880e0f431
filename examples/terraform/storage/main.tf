terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_storage" "example" {
  zone           = "eu-1a"
  title          = "data"
  size_gibibytes = 2
  server_id      = svccloud_server.writer.id
}

resource "svccloud_ssh_key" "admin" {
  name       = "storage-admin"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGjFK+eZWK9NqdxxJhf+F6HIfPOV8zQUEuMcwm3ELbs3 me@laptop"
}

resource "svccloud_server" "writer" {
  zone        = "eu-1a"
  hostname    = "writer"
  plan        = "tiny"
  template    = "tiny-linux"
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}

resource "svccloud_server" "reader" {
  zone        = "eu-1a"
  hostname    = "reader"
  plan        = "tiny"
  template    = "tiny-linux"
  ssh_key_ids = [svccloud_ssh_key.admin.id]
}
