/** Servers that storages and floating IPs may name: REST and kubectl refuse the same ones, in the same words. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mirrorPool } from '../../../db/public-pool/index.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { machineIdOf } from '../../../domain/managed-machine/rules.ts'
import { useDatabase } from '../../database.ts'
import { openWorld, type World } from '../nouns/backup/world.ts'
import { type Cloud, openCloud, type Person } from '../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let world: World

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  world = await openWorld(cloud, ada)
  const pool = { zone: cloud.zone, family: 'ipv4', use: 'floating_ipv4', state: 'active' } as const
  await cloud.db.transaction().execute((tx) => mirrorPool(tx, { ...pool, id: 'pool', cidr: '203.0.113.0/24' }))
})
afterAll(() => cloud.close())

interface Named {
  readonly type: typeof Storage | typeof FloatingIp
  readonly plural: 'storages' | 'floatingips'
  readonly path: (id: string) => string
  readonly make: () => Promise<string>
}
const NAMED: Readonly<Record<string, Named>> = {
  storage: {
    type: Storage,
    plural: 'storages',
    path: (id) => `/v1/storages/${id}/attach`,
    make: () => world.storage(),
  },
  'floating IP': {
    type: FloatingIp,
    plural: 'floatingips',
    path: (id) => `/v1/floating-ips/${id}/assign`,
    async make() {
      const { body } = await ada.send('POST', '/v1/floating-ips', { body: { zone: cloud.zone } })
      cloud.caches
        .of(FloatingIp)
        .apply((await cloud.admin.get(FloatingIp, keyOf(body.floating_ip.id))) ?? expect.fail())
      return body.floating_ip.id
    },
  },
}
const keyOf = (name: string) => ({ namespace: world.namespace, name })

const machine = (type: 'dev_cluster' | 'edge' | 'node_pool') => () =>
  world.server(
    'started',
    'running',
    { spec: { managedBy: `${type}:owner` } },
    { name: machineIdOf(newUuid(systemRandom), type) },
  )

test.each(
  Object.entries(NAMED).flatMap(([title, noun]) =>
    (
      [
        ['an edge', machine('edge'), '404 ', '404 '],
        // Those that may be named are looked for when they are claimed: these have no room.
        ['a node pool', machine('node_pool'), 'has no room on any host', '409 in_use: '],
        ['a dev cluster', machine('dev_cluster'), 'has no room on any host', '404 '],
        ['an edge to come', async () => machineIdOf(newUuid(systemRandom), 'edge'), '404 ', '404 '],
        ['nobody, which leaves', () => world.server('started', 'running', {}, { isDeleting: true }), '404 ', '404 '],
      ] as const
    ).map(([owner, ...rest]) => [title, owner, noun, ...rest] as const),
  ),
)(
  'a %s that is given a server of %s',
  async (_title, _owner, { type, plural, path, make }, server, ofStorage, ofFloatingIp) => {
    const [id, serverId] = [await make(), await server()]
    const { status, body } = await ada.send('POST', path(id), { body: { server_id: serverId } })
    const { reason, detail } = body
    const rest = `${status} ${[reason, detail].filter((part) => part !== undefined).join(': ')}`
    const oldObject = await cloud.admin.get(type as typeof Storage, keyOf(await make()))
    const object = { ...oldObject, spec: { ...oldObject?.spec, serverId } }
    const kubectl = await world.ask(plural, 'UPDATE', { object, oldObject })
    expect(rest).toContain(type === Storage ? ofStorage : ofFloatingIp)
    expect(kubectl).toBe(rest)
  },
)
