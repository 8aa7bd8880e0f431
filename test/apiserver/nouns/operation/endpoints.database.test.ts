/** Operations as a customer reads them: one list of what runs and what has ended, and a read that waits. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordOperation } from '../../../../db/operation/index.ts'
import type { FinishedOperation } from '../../../../domain/operations.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { CustomImage } from '../../../../resources/custom-image/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
const ended: FinishedOperation[] = []
let running: { readonly id: string; readonly server_id: string }

const endedOperation = (minute: number, more: Partial<FinishedOperation> = {}): FinishedOperation => ({
  id: randomUUID(),
  kind: 'server.stop',
  target: { type: 'server', id: 'long-gone' },
  actor: 'token:t',
  requestId: 'r',
  status: 'succeeded',
  step: '',
  stepIndex: 1,
  stepCount: 1,
  error: '',
  createdAt: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
  deadlineAt: '2026-01-02T00:00:00.000Z',
  startedAt: null,
  finishedAt: '2026-01-01T12:00:00.000Z',
  events: [{ at: '2026-01-01T12:00:00.000Z', kind: 'succeeded', message: 'Done.' }],
  ...more,
})

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  // Three of them at the same instant: only their ids tell them apart.
  ended.push(
    ...[1, 2, 3, 3, 3, 4].map((minute) => endedOperation(minute)),
    endedOperation(5, { status: 'failed', error: 'x', target: { type: 'server', id: 'other' } }),
  )
  for (const operation of ended) await recordOperation(cloud.db, owner.accountId, operation)
  await recordOperation(cloud.db, randomUUID(), endedOperation(6))
  await owner.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
  const created = await owner.send('POST', '/v1/servers', {
    body: { zone: cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux' },
  })
  running = created.body['operation']
})
afterAll(() => cloud.close())

const idsOf = (reply: Reply): string[] => reply.body['items'].map((item: { id: string }) => item.id)
const list = (query = '') => owner.send('GET', `/v1/operations${query}`)

test('lists what runs before what has ended, each once, without events', async () => {
  const reply = await list()
  expect(idsOf(reply)[0]).toBe(running.id)
  expect(idsOf(reply).toSorted()).toEqual([running.id, ...ended.map(({ id }) => id)].toSorted())
  for (const item of reply.body['items']) expect(item).not.toHaveProperty('events')
  await recordOperation(
    cloud.db,
    owner.accountId,
    endedOperation(0, { id: running.id, createdAt: reply.body['items'][0].created_at }),
  )
  expect(idsOf(await list()).filter((id) => id === running.id)).toHaveLength(1)
})

test('pages of one are the whole list, in its order', async () => {
  const whole = idsOf(await list())
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page: Reply = await list(`?limit=1${cursor === null ? '' : `&cursor=${cursor}`}`)
    seen.push(...idsOf(page))
    cursor = page.body['next_cursor']
  } while (cursor !== null && seen.length <= whole.length)
  expect(seen).toEqual(whole)
})

test('filters by id, status and resource', async () => {
  const [first, second] = ended
  expect(idsOf(await list(`?id=${first?.id}&id=${running.id}&id=not-an-id`)).toSorted()).toEqual(
    [first?.id, running.id].toSorted(),
  )
  expect(idsOf(await list('?status=failed'))).toEqual([ended.at(-1)?.id])
  expect(idsOf(await list(`?resource=server:${running.server_id}`))).toContain(running.id)
  expect(idsOf(await list('?resource=server:long-gone&limit=100'))).toContain(second?.id)
  for (const query of [
    '?resource=server',
    '?status=done',
    '?cursor=nonsense',
    `?${Array.from({ length: 51 }, () => 'id=a').join('&')}`,
  ])
    expect((await list(query)).status, query).toBe(400)
})

test('a read waits for a change, and only as long as asked', async () => {
  const key = { namespace: accountNamespace(owner.accountId), name: running.id }
  const waiting = owner.send('GET', `/v1/operations/${running.id}?wait=30`)
  const { spec } = (await cloud.admin.get(Operation, key)) ?? {}
  const status = { status: 'running' as const, step: 'storage', stepIndex: 1, error: '', events: [] }
  expect(spec).toBeDefined()
  // Written again until the reader sees one: it may not have begun to wait when the first is written.
  let step = 1
  const answered = waiting.then(() => true)
  while (!(await Promise.race([answered, new Promise<false>((resolve) => setTimeout(resolve, 50, false))]))) {
    await cloud.admin.patch(Operation, key, { status: { ...status, stepIndex: step++ % 3 } }, 'status')
  }
  expect((await waiting).body['operation']).toMatchObject({ status: 'running', step: 'storage' })
  expect((await owner.send('GET', `/v1/operations/${running.id}?wait=1`)).status).toBe(200)
  expect((await owner.send('GET', `/v1/operations/${ended[0]?.id}?wait=30`)).body['operation']).toMatchObject({
    status: 'succeeded',
  })
  for (const wait of ['0', '31', 'x', ''])
    expect((await owner.send('GET', `/v1/operations/${running.id}?wait=${wait}`)).status, wait).toBe(400)
})

test('what has ended and what cannot be undone is not cancelled: 409, audited', async () => {
  for (const id of [running.id, ended[0]?.id]) {
    const reply = await owner.send('POST', `/v1/operations/${id}/cancel`)
    expect([reply.status, reply.body['reason']]).toEqual([409, 'state_not_allowed'])
    expect(await cloud.auditOf(reply)).toMatchObject([
      { action: 'operation.cancel', outcome: 'failed', resource_id: id },
    ])
  }
  expect((await owner.send('POST', `/v1/operations/${randomUUID()}/cancel`)).status).toBe(404)
})

test('long copies are cancelled by who requested them, as long as they run', async () => {
  const cancel = (id: string) => owner.send('POST', `/v1/operations/${id}/cancel`)
  const image = await owner.send('POST', '/v1/custom-images', {
    body: {
      zone: cloud.zone,
      title: 'Golden',
      source_url: 'https://images.example.com/disk.qcow2',
      checksum_sha256: 'a'.repeat(64),
    },
  })
  const empty = await owner.send('POST', '/v1/storages', { body: { zone: cloud.zone, size_gibibytes: 1 } })
  const key = { namespace: accountNamespace(owner.accountId), name: empty.body['storage'].id }
  const { operation } = (await cloud.admin.get(Storage, key))?.spec ?? {}
  if (operation === undefined) throw new Error('there is no operation')
  const ofStorage = { id: operation.id, kind: operation.kind, status: 'succeeded', step: 'attached' } as const
  cloud.caches.of(Storage).apply(
    await cloud.admin.patch(
      Storage,
      key,
      {
        status: {
          state: 'online',
          nodeName: 'node-1',
          pool: 'pool-1',
          sizeGibibytes: 1,
          conditions: [],
          operation: {
            ...ofStorage,
            stepIndex: 2,
            stepCount: 3,
            error: '',
            actor: operation.actor,
            createdAt: operation.requestedAt,
            deadlineAt: operation.deadlineAt,
            finishedAt: operation.requestedAt,
          },
        },
      },
      'status',
    ),
  )
  const copy = await owner.send('POST', '/v1/storages', { body: { source_storage_id: key.name } })
  expect([image.status, copy.status], JSON.stringify(copy.body)).toEqual([202, 202])
  for (const { body } of [image, copy]) {
    const reply = await cancel(body['operation'].id)
    expect(reply.status, JSON.stringify(reply.body)).toBe(202)
    expect(await cloud.auditOf(reply)).toMatchObject([{ action: 'operation.cancel', outcome: 'success' }])
  }
  const imageKey = { ...key, name: image.body['custom_image'].id }
  const copyKey = { ...key, name: copy.body['storage'].id }
  const marked = { arguments: { cancel: 'true' } }
  expect((await cloud.admin.get(CustomImage, imageKey))?.spec.operation).toMatchObject(marked)
  expect((await cloud.admin.get(Storage, copyKey))?.spec.operation).toMatchObject(marked)
  const another = await owner.send('POST', '/v1/storages', { body: { zone: cloud.zone, size_gibibytes: 1 } })
  expect((await cancel(another.body['operation'].id)).status).toBe(409) // nothing is copied
})

test('an operation has ended once what it changed is read here', async () => {
  const created = await owner.send('POST', '/v1/storages', { body: { zone: cloud.zone, size_gibibytes: 1 } })
  const { id } = created.body['operation'] as { id: string } // as the contract has it
  const namespace = accountNamespace(owner.accountId)
  const status = async () => (await owner.send('GET', `/v1/operations/${id}`)).body['operation'].status as string
  const end = { status: 'succeeded' as const, step: 'attached', stepIndex: 3, error: '', events: [] }
  await cloud.admin.patch(Operation, { namespace, name: id }, { status: end }, 'status')
  expect(await status()).toBe('running')
  const listed = (await list(`?id=${id}`)).body['items'] as { status: string }[] // as the contract has it
  expect(listed[0]?.status).toBe('running')
  const key = { namespace, name: created.body['storage'].id }
  const operation = (await cloud.admin.get(Storage, key))?.spec.operation
  if (operation === undefined) throw new Error('there is no operation')
  const shown = { ...end, id, kind: operation.kind, actor: operation.actor, stepCount: 3, events: undefined }
  const progress = { ...shown, createdAt: operation.requestedAt, deadlineAt: operation.deadlineAt }
  cloud.caches
    .of(Storage)
    .apply(await cloud.admin.patch(Storage, key, { status: { state: 'online', operation: progress } }, 'status'))
  expect(await status()).toBe('succeeded')
})
