terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_object_storage_bucket" "example" {
  zone = svccloud_object_storage.here.zone
  name = "${svccloud_object_storage.here.bucket_prefix == null ? "" : svccloud_object_storage.here.bucket_prefix}photos"
}

resource "svccloud_object_storage" "here" {
  zone = "eu-1a"
}
