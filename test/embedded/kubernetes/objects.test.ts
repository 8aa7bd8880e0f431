import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openWidgetWorld, openWorld, watchUntil, widget, WIDGETS } from './world.ts'

const CONFIG = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
})

test('an object is created, read, listed, replaced and deleted', async () => {
  const world = await openWorld()
  const made = await world.post(CONFIG, configMap('a', { k: 'v' }))
  expect(made.status).toBe(201)
  expect(made.body.metadata).toMatchObject({ name: 'a', namespace: 'default' })
  expect(made.body.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  expect((await world.get(`${CONFIG}/a`)).body).toEqual(made.body)
  const list = await world.get(CONFIG)
  expect(list.body).toMatchObject({ kind: 'ConfigMapList', apiVersion: 'v1' })
  expect(list.body.items.map((item: any) => item.metadata.name)).toEqual(['a'])
  const replaced = await world.put(`${CONFIG}/a`, { ...made.body, data: { k: 'w' } })
  expect(replaced.status).toBe(200)
  expect(Number(replaced.body.metadata.resourceVersion)).toBeGreaterThan(Number(made.body.metadata.resourceVersion))
  const gone = await world.remove(`${CONFIG}/a`)
  expect(gone.body).toMatchObject({
    kind: 'Status',
    status: 'Success',
    details: { name: 'a', kind: 'configmaps', uid: made.body.metadata.uid },
  })
  expect((await world.get(`${CONFIG}/a`)).body).toMatchObject({
    code: 404,
    reason: 'NotFound',
    message: 'configmaps "a" not found',
  })
})

test('a write that changes nothing keeps the resource version', async () => {
  const world = await openWorld()
  const made = await world.post(CONFIG, configMap('a', { k: 'v' }))
  const again = await world.put(`${CONFIG}/a`, made.body)
  expect(again.body.metadata.resourceVersion).toBe(made.body.metadata.resourceVersion)
})

test('a stale resource version is a conflict, for replacing and for patching', async () => {
  const world = await openWidgetWorld()
  const made = await world.post(WIDGETS, widget('a'))
  await world.merge(`${WIDGETS}/a`, { spec: { replicas: 2 } })
  const stale = await world.put(`${WIDGETS}/a`, made.body)
  expect(stale.body).toMatchObject({
    code: 409,
    reason: 'Conflict',
    message:
      'Operation cannot be fulfilled on widgets.example.dev "a": the object has been modified; please apply your ' +
      'changes to the latest version and try again',
  })
  expect(
    (
      await world.merge(`${WIDGETS}/a`, {
        metadata: { resourceVersion: made.body.metadata.resourceVersion },
        spec: { replicas: 3 },
      })
    ).status,
  ).toBe(409)
  const { resourceVersion: _revision, ...metadata } = made.body.metadata
  expect((await world.put(`${WIDGETS}/a`, { ...made.body, metadata })).status).toBe(422)
})

test('a name is generated, a taken name refused', async () => {
  const world = await openWorld()
  const made = await world.post(CONFIG, { ...configMap(''), metadata: { generateName: 'x-' } })
  expect(made.body.metadata.name).toMatch(/^x-[a-z0-9]{5}$/)
  await world.post(CONFIG, configMap('a'))
  expect((await world.post(CONFIG, configMap('a'))).body).toMatchObject({
    code: 409,
    reason: 'AlreadyExists',
    message: 'configmaps "a" already exists',
  })
})

test('an object needs its namespace', async () => {
  const world = await openWorld()
  const refused = await world.post('/api/v1/namespaces/none/configmaps', configMap('a'))
  expect(refused.body).toMatchObject({ code: 404, reason: 'NotFound', message: 'namespaces "none" not found' })
})

test('the generation counts changes of the desired state only, and /status only changes the status', async () => {
  const world = await openWidgetWorld()
  const made = await world.post(WIDGETS, { ...widget('a'), status: { replicas: 5 } })
  expect(made.body.metadata.generation).toBe(1)
  expect(made.body.status).toBeUndefined()
  expect((await world.merge(`${WIDGETS}/a`, { metadata: { labels: { l: '1' } } })).body.metadata.generation).toBe(1)
  expect((await world.merge(`${WIDGETS}/a`, { spec: { replicas: 3 } })).body.metadata.generation).toBe(2)
  const status = await world.merge(`${WIDGETS}/a/status`, {
    metadata: { labels: { l: '2' } },
    spec: { replicas: 7 },
    status: { replicas: 3 },
  })
  expect(status.body).toMatchObject({
    metadata: { generation: 2, labels: { l: '1' } },
    spec: { replicas: 3 },
    status: { replicas: 3 },
  })
})

test('defaults are filled in, unknown members dropped with a warning, or refused when strict', async () => {
  const world = await openWidgetWorld()
  const made = await world.post(WIDGETS, widget('a', { bogus: 1, parts: [{ name: 'p' }], free: { any: { thing: 1 } } }))
  expect(made.body.spec).toEqual({
    size: 'small',
    replicas: 1,
    parts: [{ name: 'p', colour: 'grey' }],
    free: { any: { thing: 1 } },
  })
  expect(made.headers.warning).toBe('299 - "unknown field \\"spec.bogus\\""')
  const strict = await world.post(`${WIDGETS}?fieldValidation=Strict`, widget('b', { bogus: 1 }))
  expect(strict.body).toMatchObject({
    code: 400,
    message: 'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus"',
  })
  const twice = await world.post(
    `${WIDGETS}?fieldValidation=Strict`,
    '{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"size":"small","size":"large"}}',
  )
  expect(twice.body.message).toContain('duplicate field "spec.size"')
})

test('every fault of an object is named', async () => {
  const world = await openWidgetWorld()
  const refused = await world.post(WIDGETS, widget('a', { size: 'huge', replicas: 10, image: 'ABC', tags: ['x', 'x'] }))
  expect(refused.body).toMatchObject({
    code: 422,
    reason: 'Invalid',
    details: { name: 'a', group: 'example.dev', kind: 'Widget' },
  })
  expect(refused.body.details.causes).toEqual([
    {
      reason: 'FieldValueNotSupported',
      message: 'Unsupported value: "huge": supported values: "small", "large"',
      field: 'spec.size',
    },
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: 10: spec.replicas in body should be less than or equal to 9',
      field: 'spec.replicas',
    },
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: "ABC": spec.image in body should match \'^[a-z]+$\'',
      field: 'spec.image',
    },
    { reason: 'FieldValueDuplicate', message: 'Duplicate value: "x"', field: 'spec.tags[1]' },
  ])
})

test('dry run does everything but storing', async () => {
  const world = await openWidgetWorld()
  const dry = await world.post(`${WIDGETS}?dryRun=All`, widget('a'))
  expect(dry.status).toBe(201)
  expect(dry.body.spec.replicas).toBe(1)
  expect((await world.get(`${WIDGETS}/a`)).status).toBe(404)
})

test('a watch shows the state, then every change, with deletions at their own revision', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a'))
  const seen = watchUntil(world, `${WIDGETS}?watch=true`, (events) => events.length === 4)
  await world.merge(`${WIDGETS}/a`, { spec: { replicas: 2 } })
  await world.post(WIDGETS, widget('b'))
  await world.remove(`${WIDGETS}/a`)
  const events = await seen
  expect(events.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual([
    'ADDED a',
    'MODIFIED a',
    'ADDED b',
    'DELETED a',
  ])
  const revisions = events.map(({ object }) => Number(object.metadata.resourceVersion))
  expect(revisions).toEqual([...revisions].sort((a, b) => a - b))
})

test('a watch resumes from a revision, and objects enter and leave its selection', async () => {
  const world = await openWidgetWorld()
  const made = await world.post(WIDGETS, widget('a'))
  await world.merge(`${WIDGETS}/a`, { metadata: { labels: { on: 'yes' } } })
  await world.merge(`${WIDGETS}/a`, { spec: { replicas: 2 } })
  await world.merge(`${WIDGETS}/a`, { metadata: { labels: { on: null } } })
  const events = await watchUntil(
    world,
    `${WIDGETS}?watch=true&labelSelector=on%3Dyes&resourceVersion=${made.body.metadata.resourceVersion}`,
    ({ length }) => length === 3,
  )
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
})

test('a revision from the future is refused, one that is no longer known expires', async () => {
  const world = await openWorld()
  const future = await world.get(`${CONFIG}?resourceVersion=999999`)
  expect(future.body).toMatchObject({
    code: 504,
    reason: 'Timeout',
    details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
  })
})

test('lists come in pages that show one moment', async () => {
  const world = await openWorld()
  for (const name of ['a', 'b', 'c', 'd']) await world.post(CONFIG, configMap(name))
  const first = await world.get(`${CONFIG}?limit=2`)
  expect(first.body.metadata.remainingItemCount).toBe(2)
  await world.remove(`${CONFIG}/c`)
  await world.post(CONFIG, configMap('e'))
  const second = await world.get(`${CONFIG}?limit=2&continue=${first.body.metadata.continue}`)
  expect(second.body.items.map((item: any) => item.metadata.name)).toEqual(['c', 'd'])
  expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion)
})

test('pages show the moment of the first despite later changes, and how much is left', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const change = fc.record({ name: fc.constantFrom(...names), isRemoval: fc.boolean() })
  const between = fc.array(fc.array(change, { maxLength: 6 }), { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(fc.subarray(names), between, fc.integer({ min: 1, max: 3 }), async (made, turns, limit) => {
      const world = await openWorld()
      for (const name of made) await world.post(CONFIG, { ...configMap(name), data: { at: 'first' } })
      const seen: string[] = []
      for (let turn = 0, token = ''; ; turn++) {
        const page = (await world.get(`${CONFIG}?limit=${limit}${token}`)).body
        seen.push(...page.items.map((item: any) => `${item.metadata.name} ${item.data.at}`))
        expect(page.metadata.remainingItemCount ?? 0).toBe(made.length - seen.length)
        if (page.metadata.continue === undefined) break
        token = `&continue=${page.metadata.continue}`
        for (const { name, isRemoval } of turns[turn] ?? []) {
          if (isRemoval) await world.remove(`${CONFIG}/${name}`)
          else {
            const known = await world.post(CONFIG, { ...configMap(name), data: { at: 'later' } })
            if (known.status === 409) await world.merge(`${CONFIG}/${name}`, { data: { at: 'changed' } })
          }
        }
      }
      expect(seen).toEqual(made.map((name) => `${name} first`))
    }),
    { numRuns: 60 },
  )
})

test('selectors choose by label, name and selectable field; other fields are refused', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a', { size: 'large' }, { labels: { t: '1' } }))
  await world.post(WIDGETS, widget('b', {}, { labels: { t: '2' } }))
  const names = async (query: string) =>
    (await world.get(`${WIDGETS}?${query}`)).body.items.map((item: any) => item.metadata.name)
  expect(await names(`labelSelector=${encodeURIComponent('t in (1,3)')}`)).toEqual(['a'])
  expect(await names(`labelSelector=${encodeURIComponent('t!=1')}`)).toEqual(['b'])
  expect(await names('fieldSelector=metadata.name%3Db')).toEqual(['b'])
  expect(await names('fieldSelector=spec.size%3Dlarge')).toEqual(['a'])
  expect((await world.get(`${WIDGETS}?fieldSelector=spec.image%3Dx`)).body).toMatchObject({
    code: 400,
    message: 'field label not supported: spec.image',
  })
})

test('tables carry the printer columns', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a'))
  await world.merge(`${WIDGETS}/a/status`, {
    status: {
      conditions: [
        { type: 'Other', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
    },
  })
  const table = await world.call('GET', WIDGETS, undefined, {
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  })
  expect(table.body.kind).toBe('Table')
  expect(table.body.columnDefinitions.map((column: any) => column.name)).toEqual([
    'Name',
    'Ready',
    'Replicas',
    'Size',
    'Age',
  ])
  expect(table.body.rows[0].cells.slice(0, 4)).toEqual(['a', 'True', 1, 'small'])
  expect(table.body.rows[0].object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } })
})
