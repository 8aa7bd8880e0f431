terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_webhook" "example" {
  name   = "chat"
  url    = "https://example.com/hooks/svccloud"
  events = ["server.*"]
}
