/** The life of dev clusters with real controllers and a real PostgreSQL, with kubectl. No simulated host runs the
 *  programs of its guest. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listQuotas } from '../../../../db/account/index.ts'
import { DEV_CLUSTER_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { DevCluster, devClusterStateOf } from '../../../../resources/dev-cluster/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { MACHINE_DOCUMENT_KEY, MachineDocument, ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, ZONE } from '../../cloud.ts'
import { openNetworkedCloud } from '../../networked-cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: () => Promise<void>
let accountId: string
let namespace: string

beforeAll(async () => {
  ;({ cloud, stop } = await openNetworkedCloud(database.db, {
    templates: [DEV_CLUSTER_TEMPLATE],
    plans: ['starter-2c-4g'],
    pools: { server_ipv6_prefix: '2001:db8::/48' },
  }))
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
})
afterAll(() => stop())

const keyOf = (name: string) => ({ namespace, name })
const read = (name: string) => cloud.kubectl.get(DevCluster, keyOf(name))
const servers = async () => (await cloud.kubectl.list(Server, { namespace })).items

async function make(name: string): Promise<void> {
  const example = parse(await readFile('examples/dev-clusters/dev-cluster.yaml', 'utf8'))
  const spec = DevCluster.spec.parse({ ...example.spec, name, zone: ZONE })
  await cloud.kubectl.create(DevCluster, { metadata: keyOf(name), spec })
}

async function machineOf(name: string) {
  const { items } = await cloud.kubectl.list(ManagedMachine, {})
  return items.find(({ spec }) => spec.managedBy === `dev_cluster:${name}`)
}

/** What its host is to hand to its server. */
async function documentOf(name: string): Promise<MachineDocument | undefined> {
  const machine = await machineOf(name)
  const { configuration } = machine?.spec ?? {}
  if (configuration === undefined) return undefined
  const at = { namespace: machine?.metadata.namespace ?? '', name: configuration.secretName }
  const text = (await cloud.kubectl.get(Secret, at))?.data?.[MACHINE_DOCUMENT_KEY] ?? ''
  return MachineDocument.parse(JSON.parse(Buffer.from(text, 'base64').toString()))
}

const when = (name: string, state: string) =>
  until(
    `${name} ${state}`,
    () => read(name),
    (found) => {
      if (found === undefined) return false
      const { metadata, spec, status } = found
      const isDeleting = metadata.deletionTimestamp !== undefined
      return devClusterStateOf({ name, createdAt: '', spec, status, isDeleting }) === state
    },
  )
async function remove(...names: readonly string[]): Promise<void> {
  for (const name of names) await cloud.kubectl.delete(DevCluster, keyOf(name))
  await until(
    'their end',
    async () => [...(await Promise.all(names.map(read))), ...(await servers())],
    (found) => found.every((each) => each === undefined),
  )
  expect(await database.db.selectFrom('dev_cluster').select('id').execute()).toEqual([])
  expect((await listQuotas(database.db, accountId)).filter(({ used }) => used > 0)).toEqual([])
}

test('it is one server, lives as long as that, and leaves nothing', { timeout: 240_000 }, async () => {
  await make('shop-dev')
  const document = await until(
    'its document',
    () => documentOf('shop-dev'),
    (found) => found !== undefined,
  )
  const made = await read('shop-dev')
  const uid = made?.metadata.uid ?? ''
  // Nothing in it is a secret.
  expect(JSON.stringify(document)).not.toMatch(/PRIVATE|"d":/)
  expect(document?.devCluster).toMatchObject({
    nodeName: 'shop-dev',
    release: '1.36.3',
    serviceAccountIssuer: `https://${uid}.dev-clusters.svccloud.internal`,
    issuer: { audience: uid, keys: [{ kty: 'EC' }] },
  })
  const [server] = await servers()
  expect(server?.spec).toMatchObject({
    managedBy: 'dev_cluster:shop-dev',
    template: 'dev-cluster',
    hostname: 'shop-dev',
    plan: 'starter-2c-4g',
    labels: { 'svccloud.dev/dev-cluster': 'shop-dev' },
  })
  expect(server?.metadata.name).toMatch(/^machine-dev-/)

  // This host only counts, and it says so.
  const running = await when('shop-dev', 'running')
  expect(running?.status).toMatchObject({
    serverId: server?.metadata.name,
    isSimulated: true,
    health: { apiServer: 'unknown', isNodeReady: false, detail: expect.stringMatching(/^simulated/) },
  })

  // Its owner stops it: it is what it was, and nobody starts it again.
  await cloud.kubectl.patch(Server, keyOf(server?.metadata.name ?? ''), { spec: { desiredPower: 'stopped' } })
  const stopped = await until(
    'it to be stopped',
    () => read('shop-dev'),
    (found) => found?.status?.health?.detail === 'Its server is stopped',
  )
  expect(stopped?.status?.failureReason).toBeUndefined()
  expect((await servers())[0]?.spec.desiredPower).toBe('stopped')

  // It is deleted, and so is the cluster: none is made again.
  await cloud.kubectl.delete(Server, keyOf(server?.metadata.name ?? ''))
  const lost = await when('shop-dev', 'error')
  expect(lost?.status?.failureReason).toMatch(/server was deleted/)
  await remove('shop-dev')
})
