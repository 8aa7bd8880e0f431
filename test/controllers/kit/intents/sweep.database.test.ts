/** Changes whose maker died: every one gets exactly one audit entry, and what did not happen holds nothing. */
import type { Transaction } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  INTENT_AGE_MILLISECONDS,
  type IntentSweeperOptions,
  sweepIntents,
} from '../../../../controllers/kit/intents/index.ts'
import { INTENT_HANDLERS } from '../../../../controllers/index.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import type { AuditChange } from '../../../../domain/audit/entry.ts'
import { closeIntent, closeIntents, hasIntent, listIntents, recordIntent } from '../../../../db/change/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { recordOperation } from '../../../../db/operation/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { claimNetwork, findNetwork, renameNetwork } from '../../../../db/network/index.ts'
import { arrangeRouter, claimRouter, findRouter, renameRouter } from '../../../../db/router/index.ts'
import { attachInterface } from '../../../../db/network-interface/index.ts'
import { acceptSizeChange, claimServer, findServerClaims } from '../../../../db/server/index.ts'
import type { Tables } from '../../../../db/tables.ts'
import { claimStorage, findStorageClaim, resizeStorageClaim } from '../../../../db/storage/index.ts'
import { deadlineOf, type OperationKind } from '../../../../domain/operations.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../../resources/kit/labels.ts'
import { Network } from '../../../../resources/network/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Router } from '../../../../resources/router/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
const id = () => newUuid(systemRandom)
let cloud: Cloud
let parts: IntentSweeperOptions
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await mirrorNode(database.db, {
    node: 'n1',
    zone: ZONE,
    rack: 'r1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 100, memoryMebibytes: 100_000, storageGibibytes: 1_000 },
  })
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
  const later = { ...systemClock, now: () => new Date(systemClock.now().getTime() + INTENT_AGE_MILLISECONDS + 1_000) }
  parts = {
    store: cloud.kubectl,
    db: database.db,
    clock: later,
    random: systemRandom,
    log: silentLog,
    intents: INTENT_HANDLERS,
  } as Partial<IntentSweeperOptions> as IntentSweeperOptions // the sweeper reads no caches
})

/** The transaction of the acceptance, as the API server makes it. */
async function accepted(
  action:
    | ('server.create' | 'server.update' | 'server.change_plan' | 'server.attach_network')
    | ('storage.resize' | 'network.update')
    | ('router.update' | 'router.attach_network' | 'router.detach_network'),
  serverId = id(),
  operationId = id(),
  changes: readonly AuditChange[] = [],
) {
  const type = action.split('.')[0] ?? ''
  await database.db.transaction().execute(async (tx) => {
    if (action === 'server.create') {
      await claimServer(
        tx,
        {
          accountId,
          serverId,
          hostname: `h-${serverId}`,
          zone: ZONE,
          cores: 1,
          memoryMebibytes: 192,
          storageGibibytes: 1,
        },
        { now: systemClock.now(), random: systemRandom },
      )
    }
    await recordIntent(tx, {
      operationId,
      accountId,
      resource: { type, id: serverId },
      createdAt: systemClock.now(),
      audit: {
        account_id: accountId,
        actor_email: 'ada@example.com',
        actor_kind: 'user',
        user_id: id(),
        staff_id: null,
        token_id: null,
        token_name: null,
        action,
        resource_type: type,
        resource_id: serverId,
        detail: {},
        outcome: 'success',
        source_ip: '192.0.2.1',
        user_agent: 'curl',
        request_id: `request-${operationId}`,
        changes,
      },
    })
  })
  return { serverId, operationId }
}
const stanza = (operationId: string, kind: OperationKind) => ({
  id: operationId,
  kind,
  requestedAt: systemClock.now().toISOString(),
  deadlineAt: deadlineOf(kind, systemClock.now()).toISOString(),
  actor: 'user:1',
  requestId: `request-${operationId}`,
})
const write = (serverId: string, spec: Partial<ServerSpec> = {}, annotations = {}) =>
  cloud.kubectl.create(Server, {
    metadata: { name: serverId, namespace, annotations },
    // the API server fills in the defaults
    spec: { hostname: `h-${serverId}`, zone: ZONE, plan: 'tiny', template: 'tiny-linux', ...spec } as ServerSpec,
  })
const audited = async () =>
  (await listAudit(database.db, accountId, { limit: 10 })).map(({ action, outcome, request_id, actor_email }) => ({
    action,
    outcome,
    request_id,
    actor_email,
  }))
const held = async () => (await listQuotas(database.db, accountId)).find(({ name }) => name === 'servers')?.used

test('a creation that was written is a success and keeps its claims', async () => {
  const { serverId, operationId } = await accepted('server.create')
  await write(serverId, { operation: stanza(operationId, 'server.create') })
  await sweepIntents(parts)
  expect(await audited()).toEqual([
    {
      action: 'server.create',
      outcome: 'success',
      request_id: `request-${operationId}`,
      actor_email: 'ada@example.com',
    },
  ])
  expect(await held()).toBe(1)
})

test('a creation that was not written has failed and holds nothing', async () => {
  const { serverId, operationId } = await accepted('server.create')
  const secret = { namespace, name: `${serverId}-user-data` }
  await cloud.kubectl.create(Secret, { metadata: secret, spec: undefined, data: { userData: 'eA==' } })
  await sweepIntents(parts)
  expect(await audited()).toMatchObject([{ outcome: 'failed', request_id: `request-${operationId}` }])
  expect(await held()).toBe(0)
  expect(await cloud.kubectl.get(Secret, secret)).toBeUndefined()
})

test('a creation whose server is already deleted shows in its record', async () => {
  const { serverId, operationId } = await accepted('server.create')
  const { kind, actor, requestId, requestedAt, deadlineAt } = stanza(operationId, 'server.create')
  await cloud.kubectl.create(Operation, {
    metadata: { namespace, name: operationId },
    spec: {
      kind,
      target: { type: 'server', id: serverId },
      actor,
      requestId,
      createdAt: requestedAt,
      deadlineAt,
      stepCount: 4,
    },
  })
  await sweepIntents(parts)
  expect(await audited()).toMatchObject([{ outcome: 'success' }])
})

test('or in history', async () => {
  const { serverId, operationId } = await accepted('server.create')
  const { requestedAt, ...rest } = stanza(operationId, 'server.create')
  await recordOperation(database.db, accountId, {
    ...rest,
    target: { type: 'server', id: serverId },
    status: 'succeeded',
    step: 'started',
    stepIndex: 4,
    stepCount: 4,
    error: '',
    createdAt: requestedAt,
    startedAt: null,
    finishedAt: requestedAt,
    events: [],
  })
  await sweepIntents(parts)
  expect(await audited()).toMatchObject([{ outcome: 'success' }])
})

test('a change without an operation shows as an annotation', async () => {
  const { serverId, operationId } = await accepted('server.update')
  await write(serverId, {}, { [LAST_CHANGE_ANNOTATION]: operationId })
  await sweepIntents(parts)
  expect(await audited()).toMatchObject([{ action: 'server.update', outcome: 'success' }])
})

test('a change that was not written has failed, and the server keeps its claims', async () => {
  const { serverId, operationId } = await accepted('server.create')
  await write(serverId, { operation: stanza(operationId, 'server.create') })
  await accepted('server.update', serverId)
  await sweepIntents(parts)
  expect((await audited()).map(({ action, outcome }) => `${action} ${outcome}`).sort()).toEqual([
    'server.create success',
    'server.update failed',
  ])
  expect(await held()).toBe(1)
})

test('growth of a storage that was not written holds no room and no quota', async () => {
  const storageId = id()
  const demand = { accountId, storageId, zone: ZONE, sizeGibibytes: 1 }
  await database.db.transaction().execute((tx) => claimStorage(tx, demand, systemClock.now()))
  await cloud.kubectl.create(Storage, {
    metadata: { name: storageId, namespace },
    spec: { zone: ZONE, sizeGibibytes: 1 } as StorageSpec, // the API server fills in the defaults
  })
  const grow = (sizeGibibytes: number) =>
    database.db.transaction().execute((tx) => resizeStorageClaim(tx, { accountId, storageId, sizeGibibytes }))
  const size = async () => (await findStorageClaim(database.db, { accountId, storageId }))?.sizeGibibytes
  await grow(5)
  await accepted('storage.resize', storageId)
  await sweepIntents(parts)
  expect((await audited()).map(({ action, outcome }) => `${action} ${outcome}`)).toEqual(['storage.resize failed'])
  const quotas = await listQuotas(database.db, accountId)
  expect([await size(), quotas.find(({ name }) => name === 'storage_gibibytes')?.used]).toEqual([1, 1])

  // What was written since is kept.
  await grow(7)
  await cloud.kubectl.patch(Storage, { name: storageId, namespace }, { spec: { sizeGibibytes: 7 } })
  await accepted('storage.resize', storageId)
  await sweepIntents(parts)
  expect(await size()).toBe(7)
})

test('what a server was to get, and was not written, is released; what others got for it stays', async () => {
  const [networkId, operationId, other] = [id(), id(), id()]
  const { serverId, operationId: creation } = await accepted('server.create')
  await write(serverId, { operation: stanza(creation, 'server.create') })
  const server = { accountId, serverId }
  const larger = { cores: 1, memoryMebibytes: 192, storageGibibytes: 5 }
  const means = { now: systemClock.now(), random: systemRandom }
  await database.db.transaction().execute(async (tx) => {
    await claimNetwork(tx, { accountId, networkId, zone: ZONE, name: networkId }, systemRandom)
    await attachInterface(tx, { ...server, networkId, networkUid: networkId }, means)
    await acceptSizeChange(tx, { ...server, operationId, ...larger, cpuPool: undefined }, systemClock.now())
  })
  const claims = async () => {
    const found = await findServerClaims(database.db, server)
    return [found?.sizeChange?.operationId, found?.interfaces?.map((each) => each.networkId)]
  }
  await accepted('server.change_plan', serverId, other)
  await sweepIntents(parts)
  expect(await claims()).toEqual([operationId, [networkId]])

  await accepted('server.change_plan', serverId, operationId)
  await accepted('server.attach_network', serverId, id(), [{ field: 'network_id', before: null, after: networkId }])
  await sweepIntents(parts)
  expect(await claims()).toEqual([undefined, undefined])
  expect((await audited()).map(({ action, outcome }) => `${action} ${outcome}`).sort()).toEqual([
    'server.attach_network failed',
    'server.change_plan failed',
    'server.change_plan failed',
    'server.create success',
  ])
})

test('a young intent is left to its maker', async () => {
  await accepted('server.create')
  expect(await sweepIntents({ ...parts, clock: systemClock })).toEqual({ resolved: 0, unknown: 0 })
  expect(await audited()).toEqual([])
})

test('an intent that its maker closes in between gets no second entry', async () => {
  const { operationId } = await accepted('server.create')
  const store: Parts['store'] = {
    ...cloud.kubectl,
    get: async (type, key) => {
      await database.db.transaction().execute((tx) => closeIntent(tx, operationId))
      return cloud.kubectl.get(type, key)
    },
  }
  await sweepIntents({ ...parts, store })
  expect(await audited()).toEqual([])
  expect(await held()).toBe(1)
})

test('several sweepers at once write one entry', async () => {
  await accepted('server.create')
  await Promise.all([sweepIntents(parts), sweepIntents(parts), sweepIntents(parts)])
  expect(await audited()).toHaveLength(1)
  expect(await held()).toBe(0)
})

test('a network and a router whose change was not written have the desired name', async () => {
  const [networkId, routerId] = [id(), id()]
  const inTransaction = <Result>(work: (tx: Transaction<Tables>) => Promise<Result>) =>
    database.db.transaction().execute(work)
  await inTransaction((tx) => claimNetwork(tx, { accountId, networkId, zone: ZONE, name: 'inner' }, systemRandom))
  await inTransaction((tx) =>
    claimRouter(tx, { accountId, routerId, zone: ZONE, name: 'outer', natEnabled: false, networkIds: [] }),
  )
  await cloud.kubectl.create(Network, {
    metadata: { name: networkId, namespace },
    spec: Network.spec.parse({ zone: ZONE, name: 'inner' }),
  })
  await cloud.kubectl.create(Router, {
    metadata: { name: routerId, namespace },
    spec: Router.spec.parse({ zone: ZONE, name: 'outer', networkIds: [], natEnabled: false }),
  })
  await inTransaction((tx) => renameNetwork(tx, { accountId, networkId }, 'never written'))
  await inTransaction((tx) => renameRouter(tx, { accountId, routerId }, 'never written'))
  await accepted('network.update', networkId)
  await accepted('router.update', routerId)

  expect(await sweepIntents(parts)).toEqual({ resolved: 2, unknown: 0 })
  expect(await findNetwork(database.db, { accountId, networkId })).toMatchObject({ name: 'inner' })
  expect(await findRouter(database.db, { accountId, routerId })).toMatchObject({ name: 'outer' })
})

test('a network that was to come to a router or to leave it, and was not written, is where it was', async () => {
  const [coming, staying, routerId] = [id(), id(), id()]
  const inTransaction = <Result>(work: (tx: Transaction<Tables>) => Promise<Result>) =>
    database.db.transaction().execute(work)
  for (const networkId of [coming, staying])
    await inTransaction((tx) => claimNetwork(tx, { accountId, networkId, zone: ZONE, name: networkId }, systemRandom))
  const demand = { accountId, routerId, zone: ZONE, name: 'between', natEnabled: false, networkIds: [staying] }
  await inTransaction((tx) => claimRouter(tx, demand))
  await cloud.kubectl.create(Router, {
    metadata: { name: routerId, namespace },
    spec: Router.spec.parse({ zone: ZONE, name: 'between', networkIds: [staying], natEnabled: false }),
  })
  const networks = async () =>
    (await findRouter(database.db, { accountId, routerId }))?.networks.map((each) => [each.networkId, each.isLeaving])
  await inTransaction((tx) => arrangeRouter(tx, { accountId, routerId, joining: [coming], leaving: [staying] }))
  expect((await networks())?.toSorted()).toEqual(
    [
      [coming, false],
      [staying, true],
    ].toSorted(),
  )
  const change = (after: readonly string[]) => [{ field: 'network_ids', before: [staying], after }]
  await accepted('router.attach_network', routerId, id(), change([staying, coming]))
  await accepted('router.detach_network', routerId, id(), change([]))

  expect(await sweepIntents(parts)).toEqual({ resolved: 2, unknown: 0 })
  expect(await networks()).toEqual([[staying, false]])
})

test('intents of a noun that nobody has registered stay, raise an error, and hold no other up', async () => {
  const unknown = Array.from({ length: 101 }, () => id())
  for (const operationId of unknown) await accepted('server.update', id(), operationId)
  await database.db
    .updateTable('change_intent')
    .set({ resource_type: 'unheard_of' })
    .where('operation_id', 'in', unknown)
    .execute()
  const { serverId, operationId } = await accepted('server.create')
  await write(serverId, { operation: stanza(operationId, 'server.create') })
  const errors: unknown[] = []
  const log = { ...silentLog, error: (message: string, fields?: object) => void errors.push({ message, ...fields }) }
  expect(await sweepIntents({ ...parts, log })).toEqual({ resolved: 1, unknown: 101 })
  expect(errors).toEqual([
    { message: 'no noun has registered for change intents', resource_type: 'unheard_of', count: 101 },
  ])
  expect((await audited()).map(({ action }) => action)).toEqual(['server.create'])
  const kept = await listIntents(database.db, parts.clock.now(), { limit: 200 })
  expect(kept.map((intent) => intent.operationId).sort()).toEqual(unknown.toSorted())
  await database.db.transaction().execute((tx) => closeIntents(tx, unknown))
})

test('an intent whose handler fails stays and holds no other up', async () => {
  const broken = await accepted('server.create')
  const { serverId, operationId } = await accepted('server.create')
  await write(serverId, { operation: stanza(operationId, 'server.create') })
  const intents = INTENT_HANDLERS.map((handler) => ({
    ...handler,
    wasApplied: async (...[given, intent]: Parameters<typeof handler.wasApplied>) => {
      if (intent.operationId === broken.operationId) throw new TypeError('a bug')
      return handler.wasApplied(given, intent)
    },
  }))
  const failure = new TypeError('a bug')
  expect(await sweepIntents({ ...parts, intents })).toEqual({ resolved: 1, unknown: 0, failure })
  expect(await hasIntent(database.db, broken.operationId)).toBe(true)
  expect(await audited()).toHaveLength(1)
  await database.db.transaction().execute((tx) => closeIntent(tx, broken.operationId))
})
