import { expect, test } from 'vitest'
import { DEFAULT_QUOTAS, serverQuota, storageQuota } from '../../../domain/account/quota.ts'

test('a new account has the limits that are published', () =>
  expect(DEFAULT_QUOTAS).toEqual({
    servers: 25,
    cores: 64,
    memory_mebibytes: 128 * 1024,
    storages: 100,
    storage_gibibytes: 10 * 1024,
    ssh_keys: 100,
    init_scripts: 100,
    server_groups: 100,
    webhooks: 10,
    audit_sinks: 5,
    networks: 20,
    routers: 10,
    snapshots: 200,
    snapshot_gibibytes: 20 * 1024,
    backups: 500,
    backup_gibibytes: 50 * 1024,
    floating_ips: 10,
    load_balancers: 10,
    edges: 10,
    databases: 5,
    kubernetes_clusters: 5,
    dev_clusters: 5,
    playgrounds: 1,
    node_pools: 25,
    custom_images: 20,
    custom_image_gibibytes: 1024,
    object_storage_gibibytes: 1_024,
  }))

test('a server takes itself, its cores and its memory; a storage itself and its size', () => {
  expect(serverQuota({ cores: 2, memoryMebibytes: 4_096 })).toEqual({ servers: 1, cores: 2, memory_mebibytes: 4_096 })
  expect(storageQuota(20)).toEqual({ storages: 1, storage_gibibytes: 20 })
})
