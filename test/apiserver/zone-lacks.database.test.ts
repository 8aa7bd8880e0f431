/** A zone that does not offer what is asked for refuses alike by every route: 409 with the capability that it lacks
 *  where 409 is among the route's refusals, else 503 `not_configured`. Every route that refuses with 503 is in one of
 *  the tables. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDatabase } from '../../resources/database/index.ts'
import { Plan, ZONE_CAPABILITIES, Zone } from '../../resources/catalog/index.ts'
import { createDevCluster } from '../../resources/dev-cluster/index.ts'
import { accountNamespace, ROUTES } from '../../resources/index.ts'
import { createKubernetesCluster, KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { createLoadBalancer } from '../../resources/load-balancer/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { useDatabase } from '../database.ts'
import { until } from '../eventually.ts'
import { type Cloud, openCloud, type Person } from './cloud.ts'
import { KEY } from './nouns/dev-cluster/sample.ts'
import { makeSamples } from './samples.ts'

const BARE = 'eu-1-bare'
const WORKER = {
  family: 'cloud_native',
  cores: 2,
  memoryMebibytes: 4_096,
  storageGibibytes: 40,
  priceMonthlyCents: 1_200,
} as const

const database = useDatabase()
let cloud: Cloud
let owner: Person
let ids: Readonly<Record<string, string>>
let pool: string
/** A storage without snapshots. */
let local: string

/** Things of a zone that has everything, which then has nothing but private networks; another zone lacks these too. */
beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await cloud.admin.apply(Plan, { metadata: { name: 'worker' }, spec: WORKER })
  ids = await makeSamples({ cloud, owner })
  const namespace = accountNamespace(owner.accountId)
  const made = await owner.send('POST', cluster('node-pools')(), { body: { name: 'a', plan: 'worker', count: 0 } })
  expect(made.status, made.text).toBe(202)
  const poolId = made.body['node_pool'].id
  pool = cluster(`node-pools/${poolId}`)()
  // As if controllers had made them.
  await cloud.admin.patch(NodePool, { namespace, name: poolId }, { spec: { operation: null } })
  const clusterKey = { namespace, name: ids['kubernetes-clusters'] ?? '' }
  await cloud.admin.patch(KubernetesCluster, clusterKey, { spec: { operation: null } })
  const running = { isMade: true, version: '1.35', kubernetesVersion: '1.35.4' }
  await cloud.admin.patch(KubernetesCluster, clusterKey, { status: running }, 'status')
  const disk = { zone: cloud.zone, size_gibibytes: 1, tier: 'local-nvme' }
  local = (await owner.send('POST', '/v1/storages', { body: disk })).body['storage'].id
  for (const name of [ids['storages'] ?? '', local]) {
    await cloud.admin.patch(Storage, { namespace, name }, { spec: { operation: null } })
    await cloud.admin.patch(Storage, { namespace, name }, { status: { state: 'online' } }, 'status')
  }
  const bare = { displayName: 'Bare', region: 'eu-1', isClosed: false, capabilities: [] }
  await cloud.admin.create(Zone, { metadata: { name: BARE }, spec: bare })
  const status = { builtTemplates: [], objectStorageBackend: null, kubernetesReleases: null, hasBackups: false }
  await cloud.admin.patch(Zone, { name: cloud.zone }, { status }, 'status')
  ;(cloud.objectStorage.zones as string[]).length = 0
  await until(
    'the zone to have nothing',
    async (): Promise<string[]> =>
      (await owner.send('GET', '/v1/zones')).body['items'].find(({ name }: { name: string }) => name === cloud.zone)
        .capabilities,
    (capabilities) => !capabilities.includes('object_storage') && !capabilities.includes('load_balancers'),
  )
})
afterAll(() => cloud.close())

const cluster = (verb: string) => () => `/v1/kubernetes-clusters/${ids['kubernetes-clusters']}/${verb}`
const inNetwork = () => ({ zone: cloud.zone, network_id: ids['networks'] })

interface Lack {
  readonly capability: (typeof ZONE_CAPABILITIES)[number]
  /** Of one that is there; the route's own when absent. */
  readonly path?: () => string
  readonly body?: () => object
}

/** Routes whose answer depends on what a zone offers. */
const LACKS: Readonly<Record<string, Lack>> = {
  create_network: { capability: 'private_networks', body: () => ({ zone: BARE, name: 'x' }) },
  create_router: { capability: 'private_networks', body: () => ({ zone: BARE, name: 'x' }) },
  allocate_floating_ip: { capability: 'private_networks', body: () => ({ zone: BARE }) },
  create_load_balancer: {
    capability: 'load_balancers',
    body: () => ({ ...createLoadBalancer.example, ...inNetwork(), name: 'other' }),
  },
  create_edge: { capability: 'load_balancers', body: () => ({ network_id: ids['networks'], roles: ['nat_gateway'] }) },
  update_edge: {
    capability: 'load_balancers',
    path: () => `/v1/edges/${ids['edges']}`,
    body: () => ({ roles: ['nat_gateway'] }),
  },
  create_database: { capability: 'databases', body: () => ({ ...createDatabase.example, ...inNetwork(), name: 'o' }) },
  restore_database: {
    capability: 'object_storage',
    path: () => `/v1/databases/${ids['databases']}/restore`,
    body: () => ({ name: 'again' }),
  },
  create_kubernetes_cluster: {
    capability: 'kubernetes',
    body: () => ({ ...createKubernetesCluster.example, ...inNetwork(), name: 'other' }),
  },
  upgrade_kubernetes_cluster: { capability: 'kubernetes', path: cluster('upgrade'), body: () => ({ version: '1.36' }) },
  create_kubernetes_node_pool: {
    capability: 'kubernetes',
    path: cluster('node-pools'),
    body: () => ({ name: 'b', plan: 'worker', count: 1 }),
  },
  update_kubernetes_node_pool: { capability: 'kubernetes', path: () => pool, body: () => ({ count: 1 }) },
  create_dev_cluster: {
    capability: 'dev_clusters',
    body: () => ({ ...createDevCluster.example, zone: cloud.zone, name: 'other', ssh_keys: [KEY] }),
  },
  enable_object_storage: { capability: 'object_storage', body: () => ({ zone: BARE }) },
  rotate_object_storage_keys: {
    capability: 'object_storage',
    path: () => `/v1/object-storage/${cloud.zone}/rotate-keys`,
  },
  migrate_object_storage: { capability: 'object_storage', path: () => `/v1/object-storage/${cloud.zone}/migrate` },
  create_backup: { capability: 'backups', path: () => `/v1/storages/${ids['storages']}/backups`, body: () => ({}) },
  create_storage: {
    capability: 'backups',
    body: () => ({ zone: BARE, size_gibibytes: 1, backup_schedule: '0 3 * * *' }),
  },
  create_snapshot: {
    capability: 'snapshots',
    path: () => `/v1/storages/${local}/snapshots`,
    body: () => ({}),
  },
}

/** What else routes answer 503 for, as the contract has it: mail, keys and providers that the platform lacks or that do
 *  not answer, no room, no free address. */
const OTHERS = [
  'request_email_verification',
  'create_invitation',
  'resend_invitation',
  'verify_login_second_factor',
  'start_login_second_factor_setup',
  'finish_login_second_factor_setup',
  'start_account_totp_setup',
  'start_identity_provider_login',
  'start_identity_provider_signup',
  'finish_identity_provider_login',
  'finish_identity_provider_login_at_provider',
  'link_account_organisation',
  'switch_account',
  'list_payment_methods',
  'remove_payment_method',
  'set_default_payment_method',
  'create_payment_setup_session',
  'receive_payment_event',
  'create_server',
  'start_server',
  'rebuild_server',
  'change_server_plan',
  'move_server',
  'renumber_server_ipv6',
  'attach_server_network',
  'send_server_console_input',
  'create_custom_image',
  'copy_custom_image',
  'attach_storage',
  'resize_storage',
  'update_router',
  'add_load_balancer_certificate',
  'get_database_credentials',
  'rotate_database_credentials',
  'get_kubernetes_cluster_kubeconfig',
  'get_kubernetes_cluster_token',
  'create_kubernetes_cluster_snapshot',
  'restore_kubernetes_cluster',
  'register_kubernetes_cluster_in_platform',
  'remove_kubernetes_cluster_from_platform',
  'get_dev_cluster_kubeconfig',
  'get_dev_cluster_token',
  'start_playground',
  'get_playground_kubeconfig',
  'get_object_storage_credentials',
  'list_object_storage_buckets',
  'create_object_storage_bucket',
  'delete_object_storage_bucket',
  'list_object_storage_objects',
  'delete_object_storage_object',
  'presign_object_storage_object',
  'create_webhook',
  'rotate_webhook_secret',
  'create_audit_sink',
  'update_audit_sink',
  'stream_changes',
  'read_changes',
]

describe('a zone that lacks it', () => {
  test('is judged for every route that refuses with 503', () => {
    const known = ROUTES.filter(({ audience, refuses }) => audience === 'customer' && refuses.includes(503))
    expect([...Object.keys(LACKS), ...OTHERS].sort()).toEqual(known.map(({ id }) => id).sort())
  })

  test.each(Object.entries(LACKS))('%s', async (id, { capability, path, body }) => {
    const route = ROUTES.find((one) => one.id === id)
    if (route === undefined) throw new Error(`there is no route ${id}`)
    const reply = await owner.send(route.method, path?.() ?? route.path, body === undefined ? {} : { body: body() })
    const [status, reason] = route.refuses.includes(409) ? [409, 'zone_capability_missing'] : [503, 'not_configured']
    expect(reply.body, reply.text).toMatchObject({ status, reason, capability })
    expect(ZONE_CAPABILITIES).toContain(capability)
    expect(await cloud.auditOf(reply)).toMatchObject([{ action: route.audit, outcome: 'failed' }])
  })
})
