/** A zone that gains shared storage, with real controllers that die again and again, real agents and a real
 *  database. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findCandidate } from '../../../../db/placement/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { nodeOf, Volume } from '../../../../resources/instance/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Snapshot } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
const NODES = ['n1', 'n2', 'n3'] as const
const POOL = 'pool-1'
const DEATHS = 40
let cloud: Cloud
let namespace: string
let agents: readonly (() => Promise<void>)[]

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  agents = NODES.map((node) => cloud.startAgent(node, { mounted: [] }))
  const accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterAll(() => cloud.close())

const read = (name: string) => cloud.kubectl.get(Storage, { namespace, name })
const online = (name: string) =>
  until(
    `${name} to be online`,
    () => read(name),
    (found) => found?.status?.state === 'online',
  )
async function storage(name: string, spec: Partial<StorageSpec> = {}): Promise<void> {
  await cloud.kubectl.create(Storage, {
    metadata: { namespace, name },
    // the API server fills in the defaults
    spec: { zone: ZONE, sizeGibibytes: 2, ...spec } as StorageSpec,
  })
  await online(name)
}
const placeOf = async (name: string) => {
  const uid = (await read(name))?.metadata.uid
  return (await cloud.kubectl.list(Volume)).items
    .filter(({ spec }) => spec.storage.uid === uid)
    .map((volume) => volume.spec.pool ?? `disks of ${nodeOf(volume)}`)
}
const placesOf = async (names: readonly string[]) =>
  Object.fromEntries(await Promise.all(names.map(async (name) => [name, (await placeOf(name)).join()] as const)))
const isMoving = ({ spec, status }: KubeObject<StorageSpec, StorageStatus>): boolean =>
  spec.operation?.kind === 'storage.move' &&
  (status?.operation?.id !== spec.operation.id || status.operation.finishedAt === undefined)
const server = () => cloud.kubectl.get(Server, { namespace, name: 'web' })

test('brings there what is of tier standard, a few at a time, while guests run', async () => {
  const stop = cloud.startControllers()
  for (const name of NODES)
    await until(
      `node ${name}`,
      () => cloud.kubectl.get(Node, { name }),
      (found) => found?.status?.state === 'ready',
    )
  const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: { namespace, name: 'web' }, spec })
  await until('the server', server, (found) => found?.status?.state === 'started')
  await storage('data', { serverId: 'web' })
  await storage('fast', { tier: 'local-nvme' })
  const alone = ['one', 'two', 'three']
  for (const name of alone) await storage(name)
  await storage('held')
  await cloud.kubectl.create(Snapshot, {
    metadata: { namespace, name: newUuid(systemRandom) },
    spec: { storageId: 'held' } as never,
  })
  await until(
    'the snapshot',
    async () => (await cloud.kubectl.list(Snapshot, { namespace })).items[0],
    (found) => found?.status?.state === 'online',
  )
  await until('the server to be idle', server, (found) => found?.status?.operation?.finishedAt !== undefined)
  const before = (await server())?.status?.nodeName
  await stop()

  for (const end of agents) await end()
  agents = NODES.map((node) => cloud.startAgent(node))
  const mortals = cloud.startMortals(3, DEATHS)
  let most = 0
  const shared = ['web', 'data', ...alone]
  // One after the other, so that each has its time.
  for (const count of shared.keys())
    await until(
      `${count + 1} to be on shared storage`,
      async () => {
        const { items } = await cloud.kubectl.list(Storage, { namespace })
        most = Math.max(most, items.filter(isMoving).length)
        return { places: await placesOf(shared), moving: items.filter(isMoving).length }
      },
      ({ places, moving }) =>
        Object.values(places).filter((place) => place === POOL).length > count &&
        (count + 1 < shared.length || moving === 0),
    )
  expect(most).toBeLessThanOrEqual(2)
  expect(mortals.deaths()).toBeGreaterThan(8)
  const others = await placesOf(['fast', 'held'])
  expect(Object.values(others)).toEqual([expect.stringContaining('disks of'), expect.stringContaining('disks of')])
  expect((await read('held'))?.spec.operation?.kind).not.toBe('storage.move')
  expect((await read('one'))?.status?.operation).toMatchObject({
    kind: 'storage.move',
    status: 'succeeded',
    actor: 'system:zones',
  })

  // The guest has gone with its disks, once, and was never stopped.
  const found = await server()
  expect(found).toMatchObject({
    spec: { operation: { kind: 'server.migrate', arguments: { mode: 'live' } } },
    status: { state: 'started', operation: { status: 'succeeded' } },
  })
  expect(found?.status?.nodeName).not.toBe(before)
  expect(NODES.flatMap((node) => cloud.hostOf(node).running())).toHaveLength(1)
  const moves = [(await read('web'))?.spec.operation?.kind, (await read('data'))?.spec.operation?.kind]
  expect(moves.filter((kind) => kind === 'storage.move')).toHaveLength(1)
  const used = await Promise.all(NODES.map((node) => findCandidate(database.db, node)))
  expect(used.reduce((sum, candidate) => sum + (candidate?.used.storageGibibytes ?? 0), 0)).toBe(1 + 6 * 2)
  await mortals.stop()
})
