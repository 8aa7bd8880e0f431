/** Nodes as their operators live with them: three hosts with real agents and simulated guests, the real controllers,
 *  kubectl. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listStaffAudit } from '../../../../db/staff/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, nodeNamespace } from '../../../../resources/instance/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Node, type NodeStatus } from '../../../../resources/node/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
const NODES = ['n1', 'n2', 'n3'] as const
let cloud: Cloud
let accountId: string
let stopControllers: () => Promise<void>

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  stopControllers = cloud.startControllers()
  for (const node of NODES) cloud.startAgent(node)
  await Promise.all(NODES.map((node) => stateOf(node, 'ready')))
})
afterAll(() => cloud.close())

const eventually = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, { timeout: 90_000, interval: 50 })
const nodeOf = async (name: string) => (await cloud.kubectl.get(Node, { name }))!
const stateOf = (name: string, state: NodeStatus['state']) =>
  eventually(async () => expect((await nodeOf(name)).status?.state).toBe(state))
const edit = (name: string, spec: object) => cloud.kubectl.patch(Node, { name }, { spec })
const serverOf = async (name: string) =>
  (await cloud.kubectl.get(Server, { namespace: accountNamespace(accountId), name }))!
const operationOf = async (name: string) => (await nodeOf(name)).status?.operation

/** A started server. */
async function start(name: string): Promise<string> {
  const spec = {
    hostname: name,
    zone: ZONE,
    plan: 'tiny',
    template: 'tiny-linux',
    sshKeys: ['ssh-ed25519 AAAA'],
  } as unknown as ServerSpec // the API server fills in the defaults
  await cloud.kubectl.create(Server, { metadata: { namespace: accountNamespace(accountId), name }, spec })
  return eventually(async () => {
    const { status } = await serverOf(name)
    expect(status?.state).toBe('started')
    return status?.nodeName ?? ''
  })
}

test('cordoned with kubectl, a node takes no new servers, and both logs say who did it', async () => {
  await edit('n1', { isCordoned: true })
  await stateOf('n1', 'cordoned')
  const operation = await eventually(async () => {
    const found = await operationOf('n1')
    expect(found).toMatchObject({ kind: 'node.cordon', status: 'succeeded', actor: 'user:kubectl-edit' })
    return found!
  })
  await eventually(async () =>
    expect(
      (await cloud.kubectl.get(Operation, { namespace: nodeNamespace('n1'), name: operation.id }))?.status,
    ).toMatchObject({ status: 'succeeded' }),
  )
  expect(await listStaffAudit(database.db, { actions: ['node.cordon'], limit: 10 })).toMatchObject([
    { actor_email: 'user:kubectl-edit', resource_id: 'n1' },
  ])
  await edit('n1', { isCordoned: false })
  await stateOf('n1', 'ready')
})

describe('a node that is emptied', () => {
  test(
    'sends its started servers away live and its stopped ones as they are, and is in maintenance until it is ' +
      'uncordoned',
    async () => {
      const homes = new Map<string, string>()
      for (const name of ['web-1', 'web-2', 'web-3']) homes.set(name, await start(name))
      const home = homes.get('web-1')!
      expect([...homes.values()]).toEqual([home, home, home]) // the fullest node first
      const stopped = await serverOf('web-3')
      await cloud.kubectl.patch(
        Server,
        { namespace: stopped.metadata.namespace ?? '', name: 'web-3' },
        { spec: { desiredPower: 'stopped' } },
      )
      await eventually(async () => expect((await serverOf('web-3')).status?.state).toBe('stopped'))
      const lifeOf = (status: ServerStatus | undefined) => [status?.incarnation, status?.startedAt]
      const before = await Promise.all(['web-1', 'web-2'].map(async (name) => lifeOf((await serverOf(name)).status)))

      const id = newUuid(systemRandom)
      const requestedAt = fastClock.now()
      await edit(home, {
        isCordoned: true,
        isInMaintenance: true,
        operation: {
          id,
          kind: 'node.drain',
          requestedAt: requestedAt.toISOString(),
          deadlineAt: new Date(requestedAt.getTime() + 3_600_000).toISOString(),
          actor: 'operator',
          requestId: 'r',
          arguments: { mode: 'live_only', max_parallel: '1' },
        },
      })
      await stateOf(home, 'maintenance')
      expect(await operationOf(home)).toMatchObject({ id, status: 'succeeded' })
      const after = await Promise.all(
        ['web-1', 'web-2', 'web-3'].map((name) =>
          eventually(async () => {
            const server = await serverOf(name)
            // what was left behind is cleaned up after the node is empty
            expect(server.status?.operation?.status).toBe('succeeded')
            return server
          }),
        ),
      )
      for (const { status } of after) expect(status?.nodeName).not.toBe(home)
      expect(after.map(({ status }) => status?.state)).toEqual(['started', 'started', 'stopped'])
      // the same guests, never booted anew
      expect(after.slice(0, 2).map(({ status }) => lifeOf(status))).toEqual(before)
      expect(after.map(({ spec }) => spec.operation?.kind)).toEqual(['server.migrate', 'server.migrate', 'server.move'])
      expect(after.map(({ spec }) => spec.operation?.actor)).toEqual(['system:nodes', 'system:nodes', 'system:nodes'])
      expect((await cloud.kubectl.list(Instance, { namespace: nodeNamespace(home) })).items).toEqual([])
      const { status } = (await cloud.kubectl.get(Operation, { namespace: nodeNamespace(home), name: id }))!
      expect(status?.events?.map(({ kind }) => kind)).toEqual(
        expect.arrayContaining(['started', 'server_move_requested', 'succeeded']),
      )
      expect((await nodeOf(home)).status?.plannedWork).toBeUndefined()

      await edit(home, { isCordoned: false })
      await stateOf(home, 'ready')
      expect((await nodeOf(home)).spec.isInMaintenance ?? false).toBe(false)
    },
  )
})

describe('with controllers that die', () => {
  const DEATHS = 60

  test.each([1, 2])(
    'again and again, at write %i of their lives, a node is emptied all the same, and nobody runs twice',
    async (writesMaximum) => {
      const name = `mortal-${writesMaximum}`
      const home = await start(name)
      const { status: before } = await serverOf(name)
      await stopControllers()
      const mortals = cloud.startMortals(writesMaximum, DEATHS)
      await edit(home, { isInMaintenance: true })
      await stateOf(home, 'maintenance')
      await eventually(async () =>
        expect(await operationOf(home)).toMatchObject({
          kind: 'node.maintenance',
          status: 'succeeded',
          actor: 'user:kubectl-edit',
        }),
      )
      await edit(home, { isCordoned: false })
      await stateOf(home, 'ready')
      stopControllers = mortals.stop
      expect(mortals.deaths()).toBeGreaterThan(10)
      await eventually(async () =>
        expect((await serverOf(name)).status?.operation).toMatchObject({ kind: 'server.migrate', status: 'succeeded' }),
      )
      const { status } = await serverOf(name)
      expect(status).toMatchObject({ state: 'started', incarnation: before?.incarnation, startedAt: before?.startedAt })
      expect(status?.nodeName).not.toBe(home)
      const guests = NODES.flatMap((node) =>
        cloud
          .hostOf(node)
          .running()
          .map((guest) => ({ node, uid: guest.uid })),
      )
      expect(new Set(guests.map(({ uid }) => uid)).size).toBe(guests.length)
      expect(await listStaffAudit(database.db, { actions: ['node.maintenance'], limit: 100 })).toHaveLength(
        writesMaximum === 1 ? 1 : 2,
      )
    },
  )
})

test('a node that was removed goes with its namespace when it is empty', async () => {
  await cloud.kubectl.create(Node, {
    metadata: { name: 'n9' },
    spec: {
      zone: ZONE,
      rack: 'r1',
      roles: ['compute'],
      isCordoned: true,
      cpuOvercommit: 4,
      reservedMemoryMebibytes: 0,
    },
  })
  await stateOf('n9', 'provisioning')
  await cloud.kubectl.delete(Node, { name: 'n9' })
  await eventually(async () => expect(await cloud.kubectl.get(Node, { name: 'n9' })).toBeUndefined())
})
