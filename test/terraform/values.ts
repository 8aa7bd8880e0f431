/** Other values than those of the examples, by noun and attribute: one after the other they are changed in place, or
 *  planned as a replacement. */

export interface Trial {
  /** Folder beneath `examples/terraform/`. */
  readonly example: string
  /** In this order; each value stays. */
  readonly changed: Readonly<Record<string, unknown>>
  readonly replaced: Readonly<Record<string, unknown>>
  /** What has to change with an attribute that is replaced, by that attribute. */
  readonly beside?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Attributes that are not tried, and why. */
  readonly untried?: Readonly<Record<string, string>>
  /** Texts of the example that no state and no plan may have. */
  readonly secrets?: readonly string[]
}

const OTHER_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH6dHFPrzE3zVw5LO8u0P6Yg0h2uQnP0mCFc9PzG1mYx other@example.com'

export const TRIALS: Readonly<Record<string, Trial>> = {
  ssh_key: { example: 'ssh-key', changed: { name: 'desktop' }, replaced: { public_key: OTHER_KEY } },
  init_script: {
    example: 'init-script',
    changed: { name: 'farewell', content: '#!/bin/sh\necho goodbye > /etc/motd\n' },
    replaced: {},
  },
  server_group: {
    example: 'server-group',
    changed: { name: 'back' },
    replaced: { zone: 'eu-1b', spread: 'rack', strict: true },
    untried: { region: 'there is one region here' },
  },
  router: {
    example: 'router',
    changed: {
      name: 'outer',
      labels: { tier: 'outer' },
      static_routes: [{ destination: '10.77.0.0/16', next_hop: '10.0.0.7' }],
      network_ids: ['${svccloud_network.back.id}'],
    },
    replaced: { zone: 'eu-1b' },
    beside: { zone: { network_ids: [] } },
    untried: { nat_enabled: 'the simulated network has no public addresses' },
  },
  webhook: {
    example: 'webhook',
    changed: {
      name: 'pager',
      url: 'https://example.com/hooks/pager',
      events: ['server.*', 'storage.*'],
      enabled: false,
    },
    replaced: {},
  },
  network: {
    example: 'network',
    changed: { name: 'back', labels: { tier: 'back' }, dns_servers: ['192.0.2.53'], dhcp_enabled: false },
    replaced: { zone: 'eu-1b', ipv4_cidr: '10.99.0.0/24' },
  },
  storage: {
    example: 'storage',
    changed: {
      title: 'archive',
      labels: { tier: 'archive' },
      size_gibibytes: 3,
      server_id: '${svccloud_server.reader.id}',
      is_protected: true,
    },
    replaced: { zone: 'eu-1b', tier: 'local-nvme' },
    beside: { zone: { server_id: null } },
    untried: {
      backup_schedule: 'there is no object storage for backups here',
      backup_copy_zone: 'there is no object storage for backups here',
      backup_retention_days: 'there is no object storage for backups here',
      source_backup_id: 'there is no object storage for backups here',
      source_snapshot_id: 'it needs a snapshot',
      source_storage_id: 'it needs the state of another storage',
    },
  },
  snapshot: {
    example: 'snapshot',
    changed: { title: 'after', labels: { tier: 'kept' } },
    replaced: { storage_id: '${svccloud_storage.other.id}' },
  },
  server: {
    example: 'server',
    changed: {
      title: 'Front',
      labels: { tier: 'front' },
      ha_policy: 'none',
      migration_policy: 'relaxed',
      metadata_enabled: false,
      networks: [{ network_id: '${svccloud_network.other.id}' }],
      firewall: {
        enabled: true,
        rules: [
          { direction: 'in', action: 'drop', protocol: 'udp', port_start: 53, remote_cidrs: ['203.0.113.7'] },
          { direction: 'in', action: 'accept', protocol: 'icmp' },
        ],
      },
      plan: 'starter-1c-1g',
      storage_gibibytes: 40,
      desired_power: 'stopped',
      is_protected: true,
    },
    replaced: {
      zone: 'eu-1b',
      hostname: 'other',
      template: 'debian-13',
      ssh_keys: [OTHER_KEY],
      user_data_wo_version: 2,
      public_ipv4: true,
    },
    beside: { zone: { networks: [] }, template: { plan: 'starter-2c-4g', storage_gibibytes: 50 } },
    untried: {
      backup_schedule: 'there is no object storage for backups here',
      custom_image_id: 'it needs an image',
      init_script_id: 'it needs a script',
      server_group_id: 'it needs a group',
      ssh_key_ids: 'ssh_keys is tried',
      user_data: 'user_data_wo is tried',
    },
    secrets: ['only-for-the-guest'],
  },
}

/** Nouns without an example, and why. The provider serves neither parts of other nouns nor what nothing has run. */
export const WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  server_interface: 'not served: the networks of a server keep the same',
  load_balancer_certificate: 'not served: it is a part of a load balancer',
  kubernetes_node_pool: 'not served: it is a part of a cluster',
  dev_cluster: 'not served: it gets ready without an operation',
  object_storage: 'not served: its id is its zone, and nothing deletes it',
  object_storage_bucket: 'not served: its id is its name',
  custom_image: 'not served: nothing has run it; it needs a disk on the public Internet',
  floating_ip: 'not served: nothing has run it; the simulated network has no public addresses',
  load_balancer: 'not served: nothing has run it; simulated guests run none',
  edge: 'not served: nothing has run it; simulated guests run none',
  database: 'not served: nothing has run it; simulated guests run none',
  kubernetes_cluster: 'not served: nothing has run it; it needs the programs of control planes',
  audit_sink: 'not served: nothing has run it; it needs a collector at a public address',
}
