import { expect, test } from 'vitest'
import { Event, type KubeObject } from '../../../kit/kube/object.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import { type EventDraft, LASTING_MILLISECONDS, openEventRecorder } from '../../../kit/reconcile/events.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { NAMESPACE, openWorld } from '../world.ts'

interface Stored extends KubeObject {
  readonly type: string
  readonly reason: string
  readonly note: string
  readonly eventTime: string
  readonly series?: { readonly count: number; readonly lastObservedTime: string }
}

const ROOT: KubeObject = {
  apiVersion: 'kit.svccloud.example/v1',
  kind: 'Parent',
  metadata: { namespace: NAMESPACE, name: 'p', uid: 'u1', resourceVersion: '7' },
  spec: {},
}
const REFUSED: EventDraft = { type: 'Warning', reason: 'QuotaExceeded', action: 'Claimed', note: 'No servers left.' }
const STARTED: EventDraft = { type: 'Normal', reason: 'OperationStarted', action: 'a.b', note: 'It began.', id: 'op1' }

async function open() {
  const world = await openWorld()
  const requests: string[] = []
  const counting =
    (serve: Transport): Transport =>
    (request) => {
      requests.push(request.method)
      return serve(request)
    }
  let members = 0
  const warnings: string[] = []
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) }
  const recorder = () => {
    const { store, clock } = world.join(`controller-${++members}`, counting)
    return openEventRecorder({
      store,
      clock,
      log,
      controller: 'svccloud.dev/test',
      instance: 'i'.repeat(200),
    })
  }
  const events = async (namespace = NAMESPACE) =>
    (await world.settled(world.admin.list(Event, { namespace }))).items as unknown as Stored[]
  return { world, requests, recorder, events, warnings }
}

test('an event is about its object, by the fields that kubectl describe looks for', async () => {
  const { world, recorder, events } = await open()
  recorder().record(ROOT, { ...REFUSED, note: 'x'.repeat(5_000) })
  await world.pass(1_000)
  expect(await events()).toMatchObject([
    {
      type: 'Warning',
      reason: 'QuotaExceeded',
      action: 'Claimed',
      note: 'x'.repeat(1_024),
      regarding: { apiVersion: ROOT.apiVersion, kind: 'Parent', namespace: NAMESPACE, name: 'p', uid: 'u1' },
      reportingController: 'svccloud.dev/test',
      reportingInstance: 'i'.repeat(128),
    },
  ])
  const CoreEvent = { ...Event, group: '' }
  const fieldSelector = 'involvedObject.uid=u1,involvedObject.name=p,involvedObject.kind=Parent'
  expect(
    (await world.settled(world.admin.list(CoreEvent, { namespace: NAMESPACE, fieldSelector }))).items,
  ).toHaveLength(1)
})

test('what passes is recorded only when it lasts, with the time of its start', async () => {
  const { world, recorder, events } = await open()
  const one = recorder()
  const began = { ...STARTED, isTransient: true }
  const ended: EventDraft = { ...STARTED, reason: 'OperationSucceeded', note: 'It succeeded.' }
  one.record(ROOT, began)
  one.record(ROOT, { ...began, id: 'op2' })
  one.record(ROOT, { ...began, id: 'op2' })
  await world.pass(1_000)
  one.record(ROOT, ended)
  await world.pass(LASTING_MILLISECONDS - 2_000)
  expect((await events()).map(({ reason }) => reason)).toEqual(['OperationSucceeded'])
  await world.pass(2_000)
  const [first, second, ...others] = await events()
  expect(others).toEqual([])
  const [lasting, end] = first?.reason === 'OperationStarted' ? [first, second] : [second, first]
  expect([lasting?.reason, end?.reason]).toEqual(['OperationStarted', 'OperationSucceeded'])
  expect(Date.parse(end?.eventTime ?? '') - Date.parse(lasting?.eventTime ?? '')).toBeGreaterThanOrEqual(1_000)
})

test('what has passed makes room for what lasts', async () => {
  const { world, recorder, events } = await open()
  const one = recorder()
  const began = { ...STARTED, isTransient: true }
  for (let index = 0; index < 1_000; index++)
    for (const event of [began, { ...STARTED, reason: 'OperationSucceeded' }])
      one.record(ROOT, { ...event, id: `short ${index}` })
  one.record(ROOT, { ...began, id: 'long' })
  await world.pass(600_000)
  expect((await events()).filter(({ reason }) => reason === 'OperationStarted')).toHaveLength(1)
})

test('what happens once is recorded once, also by the process that takes over', async () => {
  const { world, recorder, events } = await open()
  const first = recorder()
  first.record(ROOT, STARTED)
  first.record(ROOT, STARTED)
  await world.pass(1_000)
  recorder().record(ROOT, STARTED)
  await world.pass(1_000)
  expect(await events()).toMatchObject([{ reason: 'OperationStarted', note: 'It began.' }])
  expect((await events())[0]?.series).toBeUndefined()
  first.record(ROOT, { ...STARTED, id: 'op2' })
  await world.pass(1_000)
  expect(await events()).toHaveLength(2)
})

test('what happens again and again is one event, counted, and written once a minute at most', async () => {
  const { world, requests, recorder, events } = await open()
  const first = recorder()
  for (let i = 0; i < 600; i++) {
    first.record(ROOT, REFUSED)
    await world.pass(1_000)
  }
  const [event, ...others] = await events()
  expect(others).toEqual([])
  expect(event?.series?.count).toBeGreaterThan(500)
  expect(event?.series?.count).toBeLessThanOrEqual(600)
  expect(requests.filter((method) => method !== 'GET').length).toBeLessThanOrEqual(11)
  recorder().record(ROOT, REFUSED)
  await world.pass(1_000)
  expect((await events())[0]?.series?.count).toBe((event?.series?.count ?? 0) + 1)
  expect(await events()).toHaveLength(1)
})

test('what happens again after a minute is written, counted as often as it happened', async () => {
  const { world, recorder, events } = await open()
  const one = recorder()
  one.record(ROOT, REFUSED)
  await world.pass(60_000)
  one.record(ROOT, REFUSED)
  await world.pass(1_000)
  expect((await events())[0]?.series?.count).toBe(2)
  one.record(ROOT, REFUSED)
  await world.pass(59_000)
  one.record(ROOT, REFUSED)
  await world.pass(1_000)
  expect((await events())[0]?.series?.count).toBe(4)
})

test('an expired event starts again', async () => {
  const { world, recorder, events } = await open()
  const one = recorder()
  one.record(ROOT, REFUSED)
  await world.pass(1_000)
  await world.pass(2 * 3_600_000)
  expect(await events()).toEqual([])
  one.record(ROOT, REFUSED)
  await world.pass(1_000)
  expect((await events()).map(({ series }) => series)).toEqual([undefined])
})

test('events of an object without a namespace are in `default`', async () => {
  const { world, recorder, events } = await open()
  recorder().record({ ...ROOT, metadata: { name: 'n1', uid: 'u2' } }, REFUSED)
  await world.pass(1_000)
  expect(await events('default')).toMatchObject([{ regarding: { name: 'n1', uid: 'u2' } }])
})

test('so many events wait at most, and those that cannot be written are dropped without harm', async () => {
  const { world, recorder, events, warnings } = await open()
  const one = recorder()
  for (let i = 0; i < 3_000; i++) one.record(ROOT, { ...REFUSED, note: `No room ${i}.` })
  await world.pass(600_000)
  expect(await events()).toHaveLength(1_000)
  expect(warnings).toEqual(['too many events wait; new ones are dropped'])
  one.record({ ...ROOT, metadata: { ...ROOT.metadata, namespace: 'nowhere' } }, REFUSED)
  one.record(ROOT, STARTED)
  await world.pass(60_000)
  expect(await events()).toHaveLength(1_001)
  expect(warnings).toHaveLength(1)
})
