/** Nodes that are fenced by their shared storage and come back: real controllers that die again and again, real agents,
 *  storage that remembers whom it refuses. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, nodeNamespace } from '../../../../resources/instance/index.ts'
import { Node, type NodeStatus } from '../../../../resources/node/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'
import { requestedNow } from '../../requested.ts'

const database = useDatabase()
const NODES = ['n1', 'n2'] as const
const ADDRESSES = { n1: ['192.0.2.1', '2001:db8::1'], n2: ['192.0.2.2'] }
const DEATHS = 40
let cloud: Cloud
let namespace: string
const agents = new Map<string, () => Promise<void>>()

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  for (const node of NODES) {
    agents.set(node, cloud.startAgent(node))
    await cloud.kubectl.patch(
      Node,
      { name: node },
      { spec: { storageAccess: { protocol: 'ceph', addresses: ADDRESSES[node], secretName: 'ceph' } } },
    )
  }
})
afterAll(() => cloud.close())
beforeEach(async () => {
  const accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const nodeOf = (name: string) => cloud.kubectl.get(Node, { name })
const inState = (node: string, state: NodeStatus['state']) =>
  until(
    state ?? '',
    () => nodeOf(node),
    (observed) => observed?.status?.state === state,
  )
const read = () => cloud.kubectl.get(Server, { namespace, name: 'web' })
const fence = (node: string, args: Record<string, string> = {}) =>
  cloud.kubectl.patch(
    Node,
    { name: node },
    {
      spec: {
        operation: requestedNow('node.fence', {
          arguments: {
            method: 'storage_block',
            reason: 'x',
            approver: 'olga@example.com',
            ...args,
          },
        }),
      },
    },
  )

/** A started server whose node has fallen silent while its guest goes on; the answer names the node. */
async function cutOff(): Promise<'n1' | 'n2'> {
  for (const node of NODES) await inState(node, 'ready')
  const spec = {
    hostname: 'web',
    zone: ZONE,
    plan: 'tiny',
    template: 'tiny-linux',
    haPolicy: 'restart',
  } as unknown as ServerSpec // the API server fills in the defaults
  await cloud.kubectl.create(Server, { metadata: { namespace, name: 'web' }, spec })
  const started = await until(
    'started',
    read,
    (server) => server?.status?.state === 'started' && server.status.operation?.finishedAt !== undefined,
  )
  const node = started?.status?.nodeName === 'n2' ? 'n2' : 'n1'
  await agents.get(node)?.()
  await inState(node, 'unreachable')
  return node
}

async function comeBack(node: string, bootId: string): Promise<void> {
  await agents.get(node)?.()
  agents.set(node, cloud.startAgent(node, { bootId }))
}

async function remove(): Promise<void> {
  await cloud.kubectl.delete(Server, { namespace, name: 'web' })
  await until('gone', read, (server) => server === undefined)
}

describe('with controllers that die at every write', () => {
  test(
    'a cut off node is refused by its storage, its server starts elsewhere, and access comes back with another ' +
      'boot only',
    async () => {
      const mortals = cloud.startMortals(1, DEATHS)
      const node = await cutOff()
      await fence(node)
      await inState(node, 'fenced')
      expect([...cloud.blocked].sort()).toEqual(ADDRESSES[node])
      expect((await nodeOf(node))?.status?.fence).toMatchObject({
        method: 'storage_block',
        evidence: expect.stringContaining(ADDRESSES[node][0] ?? ''),
      })
      await until('elsewhere', read, (server) => server?.status?.state === 'started' && server.status.nodeName !== node)
      expect(cloud.hostOf(node).running()).toHaveLength(1) // it goes on, but can write nothing

      const { bootId } = (await nodeOf(node))?.status ?? {}
      await comeBack(node, bootId ?? '')
      await until(
        'the old guest to end',
        async () => cloud.hostOf(node).running().length,
        (guests) => guests === 0,
      )
      expect((await nodeOf(node))?.status?.state).toBe('fenced')
      expect(cloud.blocked.size).toBe(ADDRESSES[node].length)

      cloud.hostOf(node).reboot()
      await comeBack(node, newUuid(systemRandom))
      await inState(node, 'ready')
      expect([cloud.blocked.size, (await nodeOf(node))?.status?.storageBlock]).toEqual([0, undefined])
      await remove()
      await mortals.stop()
    },
  )
})

test(
  'a server that is deleted keeps its addresses until its node ' + 'has come back: its guest may answer there',
  async () => {
    const stop = cloud.startControllers()
    const node = await cutOff()
    await cloud.kubectl.patch(Server, { namespace, name: 'web' }, { spec: { haPolicy: 'none' } })
    await cloud.kubectl.delete(Server, { namespace, name: 'web' })
    await until('deleting', read, (server) => server?.status?.state === 'deleting')
    await fence(node)
    await inState(node, 'fenced')
    const seenAt = await nodeOf(node)
    await until(
      'another look',
      () => cloud.kubectl.list(Instance, { namespace: nodeNamespace(node) }),
      ({ items }) => items.length === 1 && items[0]?.metadata.deletionTimestamp !== undefined,
    )
    expect(seenAt?.status?.fence?.method).toBe('storage_block')
    expect(await read()).toBeDefined()
    cloud.hostOf(node).reboot()
    await comeBack(node, newUuid(systemRandom))
    await inState(node, 'ready')
    await until('gone', read, (server) => server === undefined)
    expect(cloud.blocked.size).toBe(0)
    await stop()
  },
)
