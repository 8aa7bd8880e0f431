terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}

resource "svccloud_init_script" "example" {
  name    = "greeting"
  content = "#!/bin/sh\necho hello > /etc/motd\n"
}
