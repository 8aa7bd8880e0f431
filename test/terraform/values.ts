/** Other values than those of the examples, by noun and attribute: one after the other they are changed in place, or
 *  planned as a replacement. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemRandom } from '../../kit/sys/random.ts'
import { makeCertificate } from '../../kit/sys/certificate.ts'

export interface Trial {
  /** Folder beneath `examples/terraform/`. */
  readonly example: string
  /** In this order; each value stays. */
  readonly changed: Readonly<Record<string, unknown>>
  readonly replaced: Readonly<Record<string, unknown>>
  /** What has to change with an attribute, by that attribute. */
  readonly beside?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Attributes that are not tried, and why. */
  readonly untried?: Readonly<Record<string, string>>
  /** Texts of the example that no state and no plan may have. */
  readonly secrets?: readonly string[]
  /** Why nobody can read the secrets of the example. */
  readonly withoutSecrets?: string
  /** What it takes besides guests. */
  readonly takes?: 'hasControlPlanes' | 'hasObjectStorage'
  /** Writes what the example reads into the folder, and answers texts that no state and no plan may have. */
  readonly prepare?: (folder: string) => Promise<readonly string[]>
}

const OTHER_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH6dHFPrzE3zVw5LO8u0P6Yg0h2uQnP0mCFc9PzG1mYx other@example.com'

/** The other network of these examples is in another zone. */
const ELSEWHERE = { zone: 'eu-1b', network_id: '${svccloud_network.other.id}' }
const OTHER_STORAGE = { zone: 'eu-1b', source_storage_id: '${svccloud_storage.other.id}' }

/** Answers the secret lines of its key. */
async function writeCertificate(folder: string): Promise<readonly string[]> {
  const { certificate, key } = await makeCertificate({
    commonName: 'shop.example.com',
    hosts: ['shop.example.com'],
    days: 30,
    now: new Date(),
    random: systemRandom,
  })
  await writeFile(join(folder, 'shop.pem'), certificate)
  await writeFile(join(folder, 'shop-key.pem'), key)
  return key.split('\n').filter((line) => line !== '' && !line.startsWith('-----'))
}

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
  load_balancer: {
    example: 'load-balancer',
    changed: {
      name: 'gate',
      labels: { tier: 'front' },
      frontends: [{ name: 'http', port: 8080, mode: 'http', backend: 'web', allowed_cidrs: ['203.0.113.7/32'] }],
      backends: [{ name: 'web', members: [{ name: 'second', address: '10.20.0.12', port: 8080 }] }],
      is_protected: true,
    },
    replaced: {
      zone: 'eu-1b',
      network_id: '${svccloud_network.other.id}',
      plan: 'starter-2c-4g',
      public_ipv4: false,
    },
    beside: { zone: ELSEWHERE, network_id: ELSEWHERE },
  },
  load_balancer_certificate: {
    example: 'load-balancer-certificate',
    changed: {},
    replaced: {
      name: 'other',
      certificate: '${file("shop.pem")}\n',
      private_key_wo_version: 2,
    },
    untried: { private_key: 'private_key_wo is tried', load_balancer_id: 'it needs another load balancer' },
    prepare: writeCertificate,
  },
  database: {
    example: 'database',
    changed: { name: 'invoices', backup_schedule: '0 2 * * *', backup_retention_days: 14, is_protected: true },
    replaced: {
      zone: 'eu-1b',
      network_id: '${svccloud_network.other.id}',
      plan: 'db-2c-4g',
      storage_gibibytes: 20,
      database_name: 'other',
      owner_name: 'boss',
    },
    beside: { zone: ELSEWHERE, network_id: ELSEWHERE },
    takes: 'hasObjectStorage',
  },
  kubernetes_cluster: {
    example: 'kubernetes-cluster',
    changed: {
      labels: { tier: 'front' },
      etcd_snapshot_schedule: '0 3 * * *',
      etcd_snapshot_retention: 7,
      is_protected: true,
    },
    replaced: {
      zone: 'eu-1b',
      name: 'other',
      network_id: '${svccloud_network.other.id}',
      public_ipv4: true,
    },
    beside: { zone: ELSEWHERE, network_id: ELSEWHERE },
    untried: { version: 'one version is built here', private_endpoint: 'it is refused' },
    takes: 'hasControlPlanes',
  },
  kubernetes_node_pool: {
    example: 'kubernetes-node-pool',
    changed: {
      node_count: 2,
      labels: { tier: 'front' },
      taints: [{ key: 'only', value: 'front', effect: 'NoSchedule' }],
      max_unavailable: 2,
      autoscaling: { min: 1, max: 3 },
    },
    replaced: {
      name: 'others',
      plan: 'premium-4c-8g',
      public_ipv4: true,
    },
    untried: {
      cluster_id: 'it needs another cluster',
      zones: 'that of the network is the only one',
      version: 'one version is built here',
    },
    takes: 'hasControlPlanes',
  },
  floating_ip: {
    example: 'floating-ip',
    changed: { server_id: '${svccloud_server.second.id}' },
    replaced: { zone: 'eu-1b' },
    beside: { zone: { server_id: null } },
    untried: { target: 'another one needs a router with NAT' },
  },
  custom_image: {
    example: 'custom-image',
    changed: { title: 'silver', labels: { tier: 'front' } },
    replaced: { zone: 'eu-1b', source_storage_id: '${svccloud_storage.other.id}' },
    beside: { zone: OTHER_STORAGE, source_storage_id: OTHER_STORAGE },
    untried: {
      source_url: 'it needs a disk on the public Internet',
      checksum_sha256: 'it is for source_url',
      source_snapshot_id: 'it needs a snapshot',
      source_backup_id: 'it needs a backup',
    },
  },
  edge: {
    example: 'edge',
    changed: {
      name: 'door',
      ssh_key_ids: ['${svccloud_ssh_key.other.id}'],
      plan: 'starter-2c-4g',
      roles: ['load_balancer', 'bastion'],
      members: [{ name: 'first', frontend_port: 8080, address: '10.30.0.11', port: 80 }],
    },
    replaced: { network_id: '${svccloud_network.other.id}', placement: 'separate' },
  },
  audit_sink: {
    example: 'audit-sink',
    changed: {
      name: 'vault',
      bucket: 'log',
      prefix: 'all/',
      region: 'eu-central-1',
      access_key_id: 'AKIDOTHER',
      url: 'https://objects.example.com',
      enabled: false,
      secret_access_key_wo_version: 3,
    },
    replaced: { type: 'https', after: 5 },
    beside: {
      url: { secret_access_key_wo_version: 2 },
      type: {
        bucket: null,
        prefix: null,
        region: null,
        access_key_id: null,
        secret_access_key_wo: null,
        secret_access_key_wo_version: null,
      },
    },
    untried: { secret_access_key: 'secret_access_key_wo is tried' },
    secrets: ['only-for-the-bucket'],
  },
  object_storage: {
    example: 'object-storage',
    changed: {},
    replaced: { zone: 'eu-1b' },
    takes: 'hasObjectStorage',
  },
  object_storage_bucket: {
    example: 'object-storage-bucket',
    changed: {},
    replaced: { zone: 'eu-1b', name: 'others' },
    takes: 'hasObjectStorage',
  },
  server_interface: {
    example: 'server-interface',
    changed: {},
    replaced: {
      server_id: '${svccloud_server.other.id}',
      network_id: '${svccloud_network.other.id}',
      ipv4_address: '10.50.0.77',
      ipv6_address: '${cidrhost(svccloud_network.front.ipv6_prefix, 77)}',
    },
  },
  dev_cluster: {
    example: 'dev-cluster',
    changed: {},
    replaced: {
      zone: 'eu-1b',
      name: 'other',
      plan: 'premium-4c-8g',
      public_ipv4: true,
      network_id: '${svccloud_network.inner.id}',
      ssh_key_ids: ['${svccloud_ssh_key.other.id}'],
      labels: { tier: 'front' },
    },
    untried: { ssh_keys: 'ssh_key_ids is tried', version: 'one version is offered' },
    withoutSecrets: 'a simulated server has no API',
  },
}
