/** The record of an operation whose target went before it began: cancelled, and never because a cache is behind. */
import { expect, test } from 'vitest'
import { openSweepRate } from '../../../../controllers/kit/sweep-rate.ts'
import { OPERATION_TARGETS } from '../../../../controllers/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { findOperation } from '../../../../db/operation/index.ts'
import { operationController } from '../../../../controllers/kit/operation/reconciler.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { ADMIN, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { Event, type Key, Namespace } from '../../../../kit/kube/object.ts'
import type { Draft } from '../../../../kit/kube/store.ts'
import { openEventRecorder } from '../../../../kit/reconcile/events.ts'
import { interpret } from '../../../../kit/reconcile/interpret.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { Node } from '../../../../resources/node/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { nodeNamespace } from '../../../../resources/instance/index.ts'
import { Operation, type OperationSpec, type OperationState } from '../../../../resources/operation/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { reconcilerOf } from '../../reconciler-of.ts'

const database = useDatabase()
const OPERATION = '00000000-0000-4000-8000-000000000001'
const ANOTHER = '00000000-0000-4000-8000-000000000002'
const NOW = new Date('2026-01-01T12:00:00Z')
const times = { createdAt: NOW.toISOString(), deadlineAt: '2026-01-01T13:00:00.000Z' }

async function openParts(): Promise<Parts> {
  const [clock, random, log] = [systemClock, systemRandom, silentLog]
  const core = await openCore({ clock, random, log, storage: memoryStorage() })
  const store = openClient({
    transport: (request) => core.handle(request, ADMIN),
    fieldManager: 'tests',
    clock,
    random,
  })
  await installCrds(store, crds(), clock)
  await store.create(Namespace, { metadata: { name: nodeNamespace('n1') }, spec: undefined })
  // Nothing starts the caches: they are as far behind as they can be.
  const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  return { store, caches, db: database.db, clock, random, log, sweepRate: openSweepRate(clock) }
}

const draft: Draft<OperationSpec, OperationState> = {
  metadata: { namespace: nodeNamespace('n1'), name: OPERATION },
  spec: {
    kind: 'node.drain',
    target: { type: 'node', id: 'n1' },
    actor: 'operator',
    requestId: 'r',
    stepCount: 1,
    ...times,
  },
}

test.each([
  ['whose target asks for it is not given up, though no cache knows the target', OPERATION, 'busy', []],
  ['whose target asks for another is given up', ANOTHER, 'gone', ['abandon']],
  ['whose target is gone is given up', undefined, 'gone', ['abandon']],
])('an operation %s', async (_why, wanted, target, effects) => {
  const parts = await openParts()
  if (wanted !== undefined)
    await parts.store.create(Node, {
      metadata: { name: 'n1' },
      spec: {
        zone: 'z1',
        rack: 'r1',
        roles: ['compute'],
        isCordoned: true,
        isInMaintenance: true,
        cpuOvercommit: 4,
        reservedMemoryMebibytes: 0,
        operation: {
          id: wanted,
          kind: 'node.drain',
          requestedAt: times.createdAt,
          deadlineAt: times.deadlineAt,
          actor: 'operator',
          requestId: 'r',
        },
      },
    })
  const record = await parts.store.create(Operation, draft)
  const reconciler = reconcilerOf(operationController(OPERATION_TARGETS), parts)
  const observed = await reconciler.observe(record, NOW)
  expect(observed).toEqual({ target, history: undefined })
  expect(reconciler.plan(record, observed, NOW).map((action) => action.do === 'effect' && action.name)).toEqual(effects)
})

test('an operation that is given up is cancelled, in history too, and an Event says so', async () => {
  const parts = await openParts()
  const record = await parts.store.create(Operation, draft)
  const reconciler = reconcilerOf(operationController(OPERATION_TARGETS), parts)
  const plan = reconciler.plan(record, await reconciler.observe(record, NOW), NOW)
  const { store, clock } = parts
  const events = openEventRecorder({ store, clock, log: silentLog, controller: 'svccloud.dev/test', instance: 'i' })
  const interpreter = { ...parts, effects: reconciler.effects, events, mayAct: () => true }
  await interpret(Operation, record, plan, interpreter)
  expect(await findOperation(database.db, null, OPERATION)).toMatchObject({ status: 'cancelled' })
  expect((await store.get(Operation, record.metadata as Key))?.status).toMatchObject({ status: 'cancelled' })
  const { namespace = '' } = record.metadata
  await expect
    .poll(async () => (await store.list(Event, { namespace })).items)
    .toMatchObject([
      {
        type: 'Warning',
        reason: 'OperationCancelled',
        regarding: { kind: 'Operation', name: OPERATION },
        note: expect.stringContaining('node n1 was deleted'),
      },
    ])
})

test.each([
  ['that no request wrote', OPERATION, ['storage.move']],
  ['whose request has written it', 'r', []],
])('the audit entry of an operation %s', async (_which, requestId, actions) => {
  const parts = await openParts()
  const accountId = await createAccount(database.db)
  const namespace = accountNamespace(accountId)
  await parts.store.create(Namespace, { metadata: { name: namespace }, spec: undefined })
  const target = { type: 'storage', id: 'disk' } as const
  const record = await parts.store.create(Operation, {
    metadata: { namespace, name: OPERATION },
    spec: { ...draft.spec, kind: 'storage.move', target, requestId },
  })
  const { effects } = reconcilerOf(operationController(OPERATION_TARGETS), parts)
  for (const _again of [1, 2]) await effects?.['abandon']?.({}, record)
  const entries = await listAudit(database.db, accountId, { limit: 10 })
  expect(entries.map(({ action, resource_id }) => `${action} ${resource_id}`)).toEqual(
    actions.map((action) => `${action} disk`),
  )
})
