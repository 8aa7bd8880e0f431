terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_custom_image" "example" {
  zone              = "eu-1a"
  title             = "golden"
  source_storage_id = svccloud_storage.data.id
}

resource "svccloud_storage" "data" {
  zone           = "eu-1a"
  title          = "image-data"
  size_gibibytes = 1
}

resource "svccloud_storage" "other" {
  zone           = "eu-1b"
  title          = "image-other"
  size_gibibytes = 1
}
