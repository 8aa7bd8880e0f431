/** Servers that are given up when their node is lost: real controllers, real agents that share their storage, of which
 *  one falls silent. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { findCandidate } from '../../../../../db/placement/index.ts'
import { listQuotas } from '../../../../../db/account/index.ts'
import type { ResourceType } from '../../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../../resources/index.ts'
import { Instance, Volume } from '../../../../../resources/instance/index.ts'
import { Node, type NodeStatus } from '../../../../../resources/node/index.ts'
import { Server, type ServerSpec } from '../../../../../resources/server/index.ts'
import { Storage } from '../../../../../resources/storage/index.ts'
import { createAccount } from '../../../../accounts.ts'
import { useDatabase } from '../../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../../cloud.ts'
import { until } from '../../../until.ts'
import { requestedNow } from '../../../requested.ts'

const database = useDatabase()
const NODES = ['n1', 'n2', 'n3'] as const
let cloud: Cloud
let accountId: string
let namespace: string
const agents = new Map<string, () => Promise<void>>()

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  cloud.startControllers()
  for (const node of NODES) agents.set(node, cloud.startAgent(node))
  for (const node of NODES) await inState(node, 'ready')
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const inState = (node: string, state: NodeStatus['state']) =>
  until(
    state ?? '',
    () => cloud.kubectl.get(Node, { name: node }),
    (observed) => observed?.status?.state === state,
  )
const read = () => cloud.kubectl.get(Server, { namespace, name: 'web' })

/** A started server whose node has fallen silent; the answer names the node. */
async function lost(): Promise<string> {
  const spec = {
    hostname: 'web',
    zone: ZONE,
    plan: 'tiny',
    template: 'tiny-linux',
    haPolicy: 'none',
  } as unknown as ServerSpec // the API server fills in the defaults
  await cloud.kubectl.create(Server, { metadata: { namespace, name: 'web' }, spec })
  const started = await until(
    'started',
    read,
    (server) => server?.status?.state === 'started' && server.status.operation?.finishedAt !== undefined,
  )
  const node = started?.status?.nodeName ?? ''
  await agents.get(node)?.()
  await inState(node, 'unreachable')
  return node
}

async function expectNothingLeft(node: string, guestsLeftToIt = 0): Promise<void> {
  const count = async (type: ResourceType) => (await cloud.kubectl.list(type)).items.length
  expect([await count(Storage), await count(Instance), await count(Volume), cloud.pool.size]).toEqual([
    0,
    guestsLeftToIt,
    0,
    0,
  ])
  expect((await listQuotas(database.db, accountId)).filter(({ used }) => used !== 0)).toEqual([])
  expect((await findCandidate(database.db, node))?.used).toEqual({ cores: 0, memoryMebibytes: 0, storageGibibytes: 0 })
  for (const table of ['placement', 'address_claim'] as const)
    expect(
      await database.db.selectFrom(table).select('account_id').where('account_id', '=', accountId).execute(),
    ).toEqual([])
}

test('released by two people, a server goes without its node, which ends its guest when it is back', async () => {
  const node = await lost()
  expect([cloud.pool.size, cloud.hostOf(node).running().length]).toEqual([1, 1])
  await cloud.kubectl.patch(
    Server,
    { namespace, name: 'web' },
    {
      spec: {
        operation: requestedNow('server.force_release', {
          arguments: {
            reason: 'It burned.',
            approver: 'olga@example.com',
            attest: 'bob@example.com',
            lost_node_id: node,
          },
        }),
      },
    },
  )
  await until('gone', read, (server) => server === undefined)
  await expectNothingLeft(node, 1)
  agents.set(node, cloud.startAgent(node))
  await inState(node, 'ready')
  await until(
    'the host to be empty',
    async () => cloud.hostOf(node).running().length,
    (guests) => guests === 0,
  )
  await until(
    'nothing to be left of it',
    async () => (await cloud.kubectl.list(Instance)).items.length,
    (count) => count === 0,
  )
})

test('a release is for a lost node: one that is back ends the server itself', async () => {
  const node = await lost()
  agents.set(node, cloud.startAgent(node))
  await inState(node, 'ready')
  await until('started', read, (server) => server?.status?.state === 'started')
  await cloud.kubectl.patch(
    Server,
    { namespace, name: 'web' },
    {
      spec: {
        operation: requestedNow('server.force_release', {
          arguments: {
            reason: 'x',
            approver: 'olga@example.com',
            attest: 'bob@example.com',
            lost_node_id: node,
          },
        }),
      },
    },
  )
  await until('gone', read, (server) => server === undefined)
  expect(cloud.hostOf(node).running()).toEqual([])
  await expectNothingLeft(node)
})

test(
  'deleted while its node is lost, a server goes as soon as that ' + 'is proven, with its data on shared storage',
  async () => {
    const node = await lost()
    await cloud.kubectl.delete(Server, { namespace, name: 'web' })
    await until('deleting', read, (server) => server?.status?.state === 'deleting')
    expect(cloud.pool.size).toBe(1)
    cloud.hostOf(node).reboot()
    await cloud.kubectl.patch(
      Node,
      { name: node },
      {
        spec: {
          operation: requestedNow('node.fence', {
            arguments: {
              method: 'attest',
              reason: 'It burned.',
              approver: 'olga@example.com',
              second_approver: 'bob@example.com',
            },
          }),
        },
      },
    )
    await inState(node, 'fenced')
    await until('gone', read, (server) => server === undefined)
    await expectNothingLeft(node)
  },
)
