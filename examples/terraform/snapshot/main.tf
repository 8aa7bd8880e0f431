terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_snapshot" "example" {
  storage_id = svccloud_storage.data.id
  title      = "before"
}

resource "svccloud_storage" "data" {
  zone           = "eu-1a"
  title          = "snapshot-data"
  size_gibibytes = 1
}

resource "svccloud_storage" "other" {
  zone           = "eu-1a"
  title          = "snapshot-other"
  size_gibibytes = 1
}
