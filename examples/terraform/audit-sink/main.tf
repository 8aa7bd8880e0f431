terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_audit_sink" "example" {
  name                         = "archive"
  type                         = "s3"
  url                          = "https://s3.example.com"
  bucket                       = "audit"
  access_key_id                = "AKIDEXAMPLE"
  secret_access_key_wo         = "only-for-the-bucket"
  secret_access_key_wo_version = 1
}
