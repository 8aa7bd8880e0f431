/** A plan that only another node has the room for: real controllers and agents that share their storage, with
 *  kubectl. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findCandidate } from '../../../../db/placement/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { findServerClaims } from '../../../../db/server/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Volume } from '../../../../resources/instance/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { Plan } from '../../../../resources/catalog/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { createAccount, setQuotas } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
/** Each offers eight cores. */
const NODES = ['n1', 'n2'] as const
const CORES = 8
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  accountId = await createAccount(database.db)
  await setQuotas(database.db, 100_000, { accountId })
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
  await cloud.kubectl.create(Plan, {
    metadata: { name: 'whole-node' },
    spec: { family: 'starter', cores: CORES, memoryMebibytes: 1_024, storageGibibytes: 2, priceMonthlyCents: 800 },
  })
  cloud.startControllers()
  for (const node of NODES) cloud.startAgent(node)
  for (const node of NODES)
    await until(
      'ready',
      () => cloud.kubectl.get(Node, { name: node }),
      (observed) => observed?.status?.state === 'ready',
    )
})
afterAll(() => cloud.close())

const read = (name: string) => cloud.kubectl.get(Server, { namespace, name })
async function create(name: string): Promise<void> {
  const spec = {
    hostname: name,
    zone: ZONE,
    plan: 'tiny',
    template: 'tiny-linux',
    desiredPower: 'stopped',
  } as unknown as ServerSpec // the API server fills in the defaults
  await cloud.kubectl.create(Server, { metadata: { namespace, name }, spec })
  await until(
    'stopped',
    () => read(name),
    (server) => server?.status?.state === 'stopped' && server.status.operation?.finishedAt !== undefined,
  )
}
/** As the API asks for it when no node has been asked for room. */
async function changePlan(name: string): Promise<string> {
  const now = fastClock.now()
  const operation = {
    id: newUuid(systemRandom),
    kind: 'server.change_plan',
    requestedAt: now.toISOString(),
    deadlineAt: new Date(now.getTime() + 600_000).toISOString(),
    actor: 'user:1',
    requestId: newUuid(systemRandom),
    arguments: { previous_plan: 'tiny', previous_storage_gibibytes: '1', start: 'true' },
  }
  await cloud.kubectl.patch(
    Server,
    { namespace, name },
    { spec: { plan: 'whole-node', storageGibibytes: 2, desiredPower: 'running', operation } },
  )
  return operation.id
}
const coresOn = async (node: string) => (await findCandidate(database.db, node))?.used.cores
const ended = (id: string) =>
  until(
    'the end',
    () => cloud.kubectl.get(Operation, { namespace, name: id }),
    (operation) => ['succeeded', 'failed'].includes(operation?.status?.status ?? ''),
  )

test(
  'moves the server there, stopped as it is, and gives it the plan; the next one finds no node, and keeps what it ' +
    'has',
  async () => {
    for (const name of ['web', 'neighbour', 'another']) await create(name)
    // the fullest node first
    expect([(await read('web'))?.status?.nodeName, (await read('neighbour'))?.status?.nodeName]).toEqual(['n1', 'n1'])

    const operation = await ended(await changePlan('web'))
    expect(operation?.status).toMatchObject({
      status: 'succeeded',
      events: expect.arrayContaining([
        expect.objectContaining({ kind: 'target_chosen' }),
        expect.objectContaining({ kind: 'handed_over' }),
      ]),
    })
    const web = await until(
      'started',
      () => read('web'),
      (server) => server?.status?.state === 'started',
    )
    expect(web?.status).toMatchObject({
      nodeName: 'n2',
      cores: CORES,
      memoryMebibytes: 1_024,
      storageGibibytes: 2,
      incarnation: 1,
    })
    expect(cloud.hostOf('n2').running()).toMatchObject([{ incarnation: 1 }])
    const claims = await findServerClaims(database.db, { accountId, serverId: 'web' })
    expect([claims?.target, claims?.sizeChange, await coresOn('n1'), await coresOn('n2')]).toEqual([
      undefined,
      undefined,
      2,
      CORES,
    ])
    await until(
      'one volume each',
      () => cloud.kubectl.list(Volume),
      ({ items }) =>
        items
          .map(({ metadata }) => metadata.namespace)
          .sort()
          .join() === 'node-n1,node-n1,node-n2',
    )

    const refused = await ended(await changePlan('neighbour'))
    expect(refused?.status).toMatchObject({ status: 'failed', error: expect.stringContaining('no room') })
    const neighbour = await until(
      'stopped',
      () => read('neighbour'),
      (server) => server?.status?.state === 'stopped',
    )
    expect(neighbour).toMatchObject({
      spec: { plan: 'tiny', storageGibibytes: 1, desiredPower: 'stopped' },
      status: { nodeName: 'n1' },
    })
    expect([
      await coresOn('n1'),
      (await listQuotas(database.db, accountId)).find(({ name }) => name === 'cores')?.used,
    ]).toEqual([2, CORES + 2])
  },
)
