terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_database" "example" {
  zone              = "eu-1a"
  name              = "orders"
  network_id        = svccloud_network.back.id
  database_name     = "app"
  keep_backups_days = 0
}

resource "svccloud_network" "back" {
  zone = "eu-1a"
  name = "database-back"
}

resource "svccloud_network" "other" {
  zone = "eu-1b"
  name = "database-other"
}
