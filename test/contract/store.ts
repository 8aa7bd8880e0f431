/** What every Store must do, whoever answers: the embedded API in process, the embedded API over HTTPS, a real
 *  kube-apiserver. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { crdOf, installCrds, type KindDefinition } from '../../kit/kube/crd.ts'
import {
  CustomResourceDefinition,
  keyOf,
  Lease,
  Namespace,
  Secret,
  type KubeObject,
  type ResourceType,
} from '../../kit/kube/object.ts'
import { ApiError, type Draft, type Store, type WatchEvent } from '../../kit/kube/store.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'

const text = z.string().max(64)
const widget = {
  group: 'contract.svccloud.example',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  singular: 'widget',
  shortNames: [],
  scope: 'Namespaced',
  description: 'A thing for tests.',
  spec: z.strictObject({
    size: z.int().min(1).max(100),
    color: text.default('red'),
    note: text.optional(),
    tags: z.array(text).max(8).optional().meta({ 'x-kubernetes-list-type': 'set' }),
    zone: text
      .optional()
      .meta({ 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'zone cannot be changed' }] }),
  }),
  status: z.strictObject({ state: text, count: z.int().min(0).max(1_000_000).optional() }),
  columns: [],
  selectableFields: ['.spec.color'],
  rules: [],
  fixed: [],
} satisfies KindDefinition
interface WidgetSpec {
  readonly size: number
  readonly color?: string
  readonly note?: string
  readonly tags?: readonly string[]
  readonly zone?: string
}
interface WidgetStatus {
  readonly state: string
  readonly count?: number
}
const Widget: ResourceType<WidgetSpec, WidgetStatus> = {
  group: widget.group,
  version: widget.version,
  kind: widget.kind,
  plural: widget.plural,
  scope: 'Namespaced',
}

export interface OpenStore {
  readonly store: Store
  close(): Promise<void>
}

const DEADLINE_MILLISECONDS = 60_000
/** More than one page of the client. */
const MANY = 503
const MANY_AT_ONCE = 25

export function storeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`a Store over ${name}`, () => {
    let opened: OpenStore
    let store: Store
    let namespace: string
    const draft = (
      objectName: string,
      spec: Partial<WidgetSpec> = {},
      metadata: object = {},
    ): Draft<WidgetSpec, WidgetStatus> => ({
      metadata: { name: objectName, namespace, ...metadata },
      spec: { size: 1, ...spec },
    })
    const refusal = async (promise: Promise<unknown>): Promise<ApiError> => {
      const error = await promise.then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(ApiError)
      return error as ApiError
    }

    beforeAll(async () => {
      opened = await open()
      store = opened.store
      await installCrds(store, [crdOf(widget, 'contract')], systemClock)
      await until(async () => (await store.list(Widget).catch(() => undefined)) !== undefined)
    })
    afterAll(() => opened?.close())
    beforeEach(async () => {
      namespace = `contract-${newUuid(systemRandom).slice(0, 8)}`
      await store.create(Namespace, { metadata: { name: namespace }, spec: {} })
    })

    test('installing definitions again changes nothing', async () => {
      const definition = () => store.get(CustomResourceDefinition, { name: `${widget.plural}.${widget.group}` })
      const before = await definition()
      expect(before?.metadata.generation).toBe(1)
      await installCrds(store, [crdOf(widget, 'contract')], systemClock)
      const after = await definition()
      expect(after?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion)
      expect(after?.spec).toEqual(before?.spec)
    })

    test('creates with defaults, identity and generation; a status in the draft is not taken', async () => {
      const made = await store.create(Widget, { ...draft('a'), status: { state: 'forged' } })
      expect(made).toMatchObject({
        apiVersion: 'contract.svccloud.example/v1',
        kind: 'Widget',
        metadata: { name: 'a', namespace, generation: 1 },
        spec: { size: 1, color: 'red' },
      })
      expect(made.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
      expect(made.status).toBeUndefined()
      expect(await store.get(Widget, keyOf(made))).toEqual(made)
    })

    test('a taken name is AlreadyExists, an absent object undefined, an unknown kind an error', async () => {
      await store.create(Widget, draft('a'))
      expect(await refusal(store.create(Widget, draft('a')))).toMatchObject({ code: 409, reason: 'AlreadyExists' })
      expect(await store.get(Widget, { namespace, name: 'none' })).toBeUndefined()
      expect(await refusal(store.get({ ...Widget, plural: 'gadgets' }, { namespace, name: 'none' }))).toMatchObject({
        code: 404,
      })
      expect(
        await refusal(store.create(Widget, { ...draft('a'), metadata: { name: 'a', namespace: 'nowhere-at-all' } })),
      ).toMatchObject({ code: 404, reason: 'NotFound' })
    })

    test('invalid objects are refused with the field, unknown fields by name, and nothing is stored', async () => {
      const invalid = await refusal(store.create(Widget, draft('a', { size: 1000 })))
      expect(invalid).toMatchObject({ code: 422, reason: 'Invalid' })
      expect(invalid.causes.map(({ field }) => field)).toContain('spec.size')
      const unknown = await refusal(store.create(Widget, draft('a', { colour: 'blue' } as Partial<WidgetSpec>)))
      expect(unknown).toMatchObject({ code: 400, reason: 'BadRequest' })
      expect(unknown.message).toContain('spec.colour')
      expect(await store.get(Widget, { namespace, name: 'a' })).toBeUndefined()
    })

    test('a rule over the old value holds', async () => {
      const made = await store.create(Widget, draft('a', { zone: 'x' }))
      const refused = await refusal(store.patch(Widget, keyOf(made), { spec: { zone: 'y' } }))
      expect(refused).toMatchObject({ code: 422, reason: 'Invalid' })
      expect(refused.message).toContain('zone cannot be changed')
    })

    test('replace takes the version that was read and no other, and leaves status alone', async () => {
      const made = await store.create(Widget, draft('a'))
      await store.replaceStatus(Widget, { ...made, status: { state: 'up' } })
      expect(await refusal(store.replace(Widget, { ...made, spec: { size: 2 } }))).toMatchObject({
        code: 409,
        reason: 'Conflict',
      })
      const fresh = await found(store, Widget, keyOf(made))
      const replaced = await store.replace(Widget, { ...fresh, spec: { size: 2 }, status: { state: 'forged' } })
      expect(replaced).toMatchObject({
        metadata: { generation: 2 },
        spec: { size: 2, color: 'red' },
        status: { state: 'up' },
      })
    })

    test('replaceStatus changes nothing but status, and no generation', async () => {
      const made = await store.create(Widget, draft('a'))
      const written = await store.replaceStatus(Widget, {
        ...made,
        spec: { size: 9 },
        status: { state: 'up', count: 1 },
      })
      expect(written).toMatchObject({
        metadata: { generation: 1 },
        spec: { size: 1 },
        status: { state: 'up', count: 1 },
      })
      expect(await refusal(store.replaceStatus(Widget, { ...made, status: { state: 'late' } }))).toMatchObject({
        reason: 'Conflict',
      })
    })

    test('a merge patch merges, removes by null, and is conditional when it carries a version', async () => {
      const made = await store.create(Widget, draft('a', { note: 'n', tags: ['x'] }))
      const patched = await store.patch(Widget, keyOf(made), {
        metadata: { resourceVersion: made.metadata.resourceVersion },
        spec: { note: null, size: 3 },
      })
      expect(patched.spec).toEqual({ size: 3, color: 'red', tags: ['x'] })
      expect(
        await refusal(
          store.patch(Widget, keyOf(made), {
            metadata: { resourceVersion: made.metadata.resourceVersion },
            spec: { size: 4 },
          }),
        ),
      ).toMatchObject({ reason: 'Conflict' })
      expect(await refusal(store.patch(Widget, { namespace, name: 'none' }, { spec: { size: 4 } }))).toMatchObject({
        code: 404,
        reason: 'NotFound',
      })
    })

    test('a status patch needs the subresource; one that changes nothing keeps the version', async () => {
      const made = await store.create(Widget, draft('a'))
      const ignored = await store.patch(Widget, keyOf(made), { status: { state: 'forged' } })
      expect(ignored.status).toBeUndefined()
      const up = await store.patch(Widget, keyOf(made), { status: { state: 'up' } }, 'status')
      expect(up.status).toEqual({ state: 'up' })
      const again = await store.patch(Widget, keyOf(made), { status: { state: 'up' } }, 'status')
      expect(again.metadata.resourceVersion).toBe(up.metadata.resourceVersion)
    })

    test(
      'apply makes, changes, and takes back the fields that it no ' + 'longer names, leaving those of others',
      async () => {
        const first = await store.apply(Widget, draft('a', { note: 'mine', tags: ['x'] }))
        expect(first.spec).toEqual({ size: 1, color: 'red', note: 'mine', tags: ['x'] })
        await store.patch(Widget, keyOf(first), { spec: { color: 'blue' } })
        const second = await store.apply(Widget, draft('a', { size: 2 }))
        expect(second.spec).toEqual({ size: 2, color: 'blue' })
        const same = await store.apply(Widget, draft('a', { size: 2 }))
        expect(same.metadata.resourceVersion).toBe(second.metadata.resourceVersion)
        const status = await store.apply(Widget, { ...draft('a', { size: 2 }), status: { state: 'up' } }, 'status')
        expect(status).toMatchObject({ status: { state: 'up' }, spec: { size: 2 } })
      },
    )

    test('lists by namespace, label and selectable field', async () => {
      await store.create(Widget, draft('a', { color: 'blue' }, { labels: { team: 'x' } }))
      await store.create(Widget, draft('b', {}, { labels: { team: 'x' } }))
      await store.create(Widget, draft('c'))
      const names = async (options: Parameters<Store['list']>[1]) =>
        (await store.list(Widget, { namespace, ...options })).items.map(({ metadata }) => metadata.name).sort()
      expect(await names({})).toEqual(['a', 'b', 'c'])
      expect(await names({ labelSelector: 'team=x' })).toEqual(['a', 'b'])
      expect(await names({ fieldSelector: 'spec.color=blue' })).toEqual(['a'])
      expect((await store.list(Widget)).items.filter(({ metadata }) => metadata.namespace === namespace)).toHaveLength(
        3,
      )
    })

    test('a list of more than a page is whole', async () => {
      const names = Array.from({ length: MANY }, (_, index) => `w-${index}`)
      while (names.length > 0)
        await Promise.all(names.splice(0, MANY_AT_ONCE).map((each) => store.create(Widget, draft(each))))
      const { items } = await store.list(Widget, { namespace })
      expect(new Set(items.map(({ metadata }) => metadata.name)).size).toBe(MANY)
    })

    test('a watch reports every change after a version in order, and can be resumed', async () => {
      const { resourceVersion } = await store.list(Widget, { namespace })
      const stop = new AbortController()
      const seen: WatchEvent<WidgetSpec, WidgetStatus>[] = []
      const following = follow(store.watch(Widget, { namespace, resourceVersion, signal: stop.signal }), seen)
      const made = await store.create(Widget, draft('a'))
      const changed = await store.patch(Widget, keyOf(made), { spec: { size: 2 } })
      await store.delete(Widget, keyOf(made))
      await until(async () => changes(seen).length === 3)
      stop.abort()
      await following
      expect(changes(seen).map(({ type, object }) => [type, object.spec.size])).toEqual([
        ['ADDED', 1],
        ['MODIFIED', 2],
        ['DELETED', 2],
      ])
      expect(changes(seen)[0]?.object.kind).toBe('Widget')
      expect(Number(changes(seen)[2]?.object.metadata.resourceVersion)).toBeGreaterThan(
        Number(changed.metadata.resourceVersion),
      )

      const later = new AbortController()
      const rest: WatchEvent<WidgetSpec, WidgetStatus>[] = []
      const resumed = follow(
        store.watch(Widget, {
          namespace,
          resourceVersion: changed.metadata.resourceVersion ?? '',
          signal: later.signal,
        }),
        rest,
      )
      await until(async () => changes(rest).length === 1)
      later.abort()
      await resumed
      expect(changes(rest).map(({ type }) => type)).toEqual(['DELETED'])
    })

    test('a watch by label reports when an object enters and leaves', async () => {
      const { resourceVersion } = await store.list(Widget, { namespace })
      const stop = new AbortController()
      const seen: WatchEvent<WidgetSpec, WidgetStatus>[] = []
      const following = follow(
        store.watch(Widget, { namespace, labelSelector: 'team=x', resourceVersion, signal: stop.signal }),
        seen,
      )
      const made = await store.create(Widget, draft('a'))
      await store.patch(Widget, keyOf(made), { metadata: { labels: { team: 'x' } } })
      await store.patch(Widget, keyOf(made), { metadata: { labels: { team: 'y' } } })
      await until(async () => changes(seen).length === 2)
      stop.abort()
      await following
      expect(changes(seen).map(({ type }) => type)).toEqual(['ADDED', 'DELETED'])
    })

    test('a watch from a version before the kind was there is Expired', async () => {
      const error = await refusal(
        follow(store.watch(Widget, { resourceVersion: '1', signal: new AbortController().signal }), []),
      )
      expect(error).toMatchObject({ code: 410, reason: 'Expired' })
    })

    test('deleting is idempotent and spares another object of the same name', async () => {
      const made = await store.create(Widget, draft('a'))
      await store.delete(Widget, keyOf(made), { uid: 'c1b2a3f4-0000-4000-8000-000000000000' })
      expect(await store.get(Widget, keyOf(made))).toBeDefined()
      expect(await refusal(store.delete(Widget, keyOf(made), { resourceVersion: '1' }))).toMatchObject({
        reason: 'Conflict',
      })
      await store.delete(Widget, keyOf(made), { uid: made.metadata.uid ?? '' })
      expect(await store.get(Widget, keyOf(made))).toBeUndefined()
      await store.delete(Widget, keyOf(made))
    })

    test('an object with a finalizer stays until the finalizer is removed', async () => {
      const made = await store.create(Widget, draft('a', {}, { finalizers: ['svccloud.example/hold'] }))
      await store.delete(Widget, keyOf(made))
      const going = await found(store, Widget, keyOf(made))
      expect(going.metadata.deletionTimestamp).toBeDefined()
      expect(going.metadata.generation).toBe(2)
      const answer = await store.patch(Widget, keyOf(made), {
        metadata: { resourceVersion: going.metadata.resourceVersion, finalizers: [] },
      })
      expect(answer.metadata.finalizers ?? []).toEqual([])
      expect(answer.metadata.deletionTimestamp).toBeDefined()
      expect(await store.get(Widget, keyOf(made))).toBeUndefined()
    })

    test('children go with their owner', async () => {
      const owner = await store.create(Widget, draft('owner'))
      const { apiVersion, kind } = owner
      const ownerReferences = [
        { apiVersion, kind, name: 'owner', uid: owner.metadata.uid ?? '', controller: true, blockOwnerDeletion: true },
      ]
      const child = await store.create(Widget, draft('child', {}, { ownerReferences }))
      await store.delete(Widget, keyOf(owner))
      await until(async () => (await store.get(Widget, keyOf(child))) === undefined)
    })

    test('built-in kinds keep their own fields', async () => {
      const data = { token: Buffer.from('abc').toString('base64') }
      await store.apply(Secret, { metadata: { namespace, name: 's' }, spec: undefined, data })
      expect((await found(store, Secret, { namespace, name: 's' })).data).toEqual(data)
      const lease = await store.create(Lease, {
        metadata: { namespace, name: 'l' },
        spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2030-01-01T00:00:00.000000Z' },
      })
      expect(lease.spec.holderIdentity).toBe('me')
      expect((await store.list(Secret, { namespace })).items[0]).toMatchObject({ apiVersion: 'v1', kind: 'Secret' })
    })
  })
}

async function found<Spec, Status>(
  store: Store,
  type: ResourceType<Spec, Status>,
  key: { namespace?: string; name: string },
): Promise<KubeObject<Spec, Status>> {
  const object = await store.get(type, key)
  if (object === undefined) throw new Error(`${type.kind} ${key.name} is not there`)
  return object
}

async function follow<T>(events: AsyncIterable<T>, into: T[]): Promise<void> {
  for await (const event of events) into.push(event)
}

type ObjectEvent = Exclude<WatchEvent<WidgetSpec, WidgetStatus>, { type: 'BOOKMARK' }>
const changes = (events: readonly WatchEvent<WidgetSpec, WidgetStatus>[]): ObjectEvent[] =>
  events.filter((event) => event.type !== 'BOOKMARK')

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = systemClock.monotonicMilliseconds() + DEADLINE_MILLISECONDS
  while (!(await isTrue())) {
    if (systemClock.monotonicMilliseconds() > deadline) throw new Error('it did not come true in time')
    await systemClock.sleep(20)
  }
}
