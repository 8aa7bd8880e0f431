import { expect, test } from 'vitest'
import { type ChangeIntent, listIntents, recordIntent, recordIntents, closeIntent } from '../../../db/change/intents.ts'
import { findOperation, recordOperation } from '../../../db/operation/index.ts'
import type { FinishedOperation } from '../../../domain/operations.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const id = () => newUuid(systemRandom)
const intentAt = (createdAt: string): ChangeIntent => ({
  operationId: id(),
  accountId: id(),
  resource: { type: 'server', id: id() },
  createdAt: new Date(createdAt),
  audit: {
    account_id: id(),
    actor_email: 'a@example.com',
    actor_kind: 'user',
    user_id: null,
    staff_id: null,
    token_id: null,
    token_name: null,
    action: 'server.start',
    resource_type: 'server',
    resource_id: 'x',
    detail: {},
    outcome: 'success',
    source_ip: '',
    user_agent: '',
    request_id: id(),
    changes: [],
  },
})
const settle = (intent: ChangeIntent) => database.db.transaction().execute((tx) => closeIntent(tx, intent.operationId))

test('an intent is settled by exactly one of those who try', async () => {
  const intent = intentAt('2026-01-01T00:00:00Z')
  await database.db.transaction().execute((tx) => recordIntent(tx, intent))
  const settled = await Promise.all([1, 2, 3, 4].map(() => settle(intent)))
  expect(settled.filter(Boolean)).toHaveLength(1)
})

test('only old intents are listed, the oldest first, whole', async () => {
  const [young, old, older] = [
    intentAt('2026-01-01T00:02:00Z'),
    intentAt('2026-01-01T00:01:00Z'),
    intentAt('2026-01-01T00:00:00Z'),
  ]
  for (const intent of [young, old, older]) await database.db.transaction().execute((tx) => recordIntent(tx, intent))
  const before = new Date('2026-01-01T00:02:00Z')
  expect(await listIntents(database.db, before, { limit: 10 })).toEqual([older, old])
  expect(await listIntents(database.db, before, { limit: 1 })).toEqual([older])
  expect(await listIntents(database.db, before, { limit: 10, after: older })).toEqual([old])
  expect(await listIntents(database.db, before, { limit: 10, after: old })).toEqual([])
})

test('a page continues between intents of one instant', async () => {
  const made = [1, 2, 3].map(() => intentAt('2025-12-31T00:00:00Z'))
  await database.db.transaction().execute((tx) => recordIntents(tx, made))
  const before = new Date('2025-12-31T00:00:01Z')
  const [first] = await listIntents(database.db, before, { limit: 1 })
  const rest = await listIntents(database.db, before, { limit: 10, after: first })
  expect([first, ...rest].map((intent) => intent?.operationId).sort()).toEqual(
    made.map(({ operationId }) => operationId).sort(),
  )
})

test('the first record of an operation stays, and only its account finds it', async () => {
  const accountId = id()
  const operation: FinishedOperation = {
    id: id(),
    kind: 'server.start',
    target: { type: 'server', id: 'web' },
    actor: 'user:1',
    requestId: 'r',
    status: 'succeeded',
    step: 'started',
    stepIndex: 1,
    stepCount: 2,
    error: '',
    createdAt: '2026-01-01T00:00:00Z',
    deadlineAt: '2026-01-01T00:10:00Z',
    startedAt: null,
    finishedAt: '2026-01-01T00:01:00Z',
    events: [],
  }
  await recordOperation(database.db, accountId, operation)
  await recordOperation(database.db, accountId, { ...operation, status: 'failed' })
  expect(await findOperation(database.db, accountId, operation.id)).toEqual(operation)
  expect(await findOperation(database.db, id(), operation.id)).toBeUndefined()
  expect(await findOperation(database.db, null, operation.id)).toBeUndefined()
})
