import { expect, test } from 'vitest'
import { openWidgetWorld, widget, WIDGETS, type World } from './world.ts'

const PATH = `${WIDGETS}/a`
const by = (manager: string, more = '') => `?fieldManager=${manager}${more}`
const config = (spec: object, metadata: object = {}) => ({
  apiVersion: 'example.dev/v1',
  kind: 'Widget',
  metadata: { name: 'a', ...metadata },
  spec,
})
const fieldsOf = (object: any, manager: string, subresource?: string) =>
  object.metadata.managedFields?.find((entry: any) => entry.manager === manager && entry.subresource === subresource)
    ?.fieldsV1

test('the first apply creates and owns what it says, not what was defaulted', async () => {
  const world = await openWidgetWorld()
  const made = await world.apply(PATH, config({ size: 'small', parts: [{ name: 'x', weight: 1 }] }), by('one'))
  expect(made.status).toBe(201)
  expect(made.body.spec.replicas).toBe(1)
  expect(fieldsOf(made.body, 'one')).toEqual({
    'f:spec': { 'f:size': {}, 'f:parts': { 'k:{"name":"x"}': { '.': {}, 'f:name': {}, 'f:weight': {} } } },
  })
})

test('what a manager no longer says goes, unless another manager says it too', async () => {
  const world = await openWidgetWorld()
  await world.apply(PATH, config({ size: 'small', image: 'x', settings: { a: '1', b: '2' } }), by('one'))
  await world.apply(PATH, config({ image: 'x' }), by('two'))
  const after = await world.apply(PATH, config({ size: 'small', settings: { b: '2' } }), by('one'))
  expect(after.body.spec).toMatchObject({ image: 'x', settings: { b: '2' } })
  expect(after.body.spec.settings.a).toBeUndefined()
})

test('another value for an owned field conflicts until it is forced', async () => {
  const world = await openWidgetWorld()
  await world.apply(PATH, config({ size: 'small', image: 'x' }), by('one'))
  const refused = await world.apply(PATH, config({ image: 'y' }), by('two'))
  expect(refused.body).toMatchObject({
    code: 409,
    reason: 'Conflict',
    message: 'Apply failed with 1 conflict: conflict with "one": .spec.image',
    details: { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.image' }] },
  })
  const forced = await world.apply(PATH, config({ image: 'y' }), by('two', '&force=true'))
  expect(forced.body.spec.image).toBe('y')
  expect(fieldsOf(forced.body, 'one')).toEqual({ 'f:spec': { 'f:size': {} } })
})

test('an update takes the fields that it changes, and only those', async () => {
  const world = await openWidgetWorld()
  await world.apply(PATH, config({ size: 'small', image: 'x' }), by('one'))
  const changed = await world.call(
    'PATCH',
    `${PATH}?fieldManager=editor`,
    { spec: { image: 'z' } },
    { 'content-type': 'application/merge-patch+json' },
  )
  expect(fieldsOf(changed.body, 'editor')).toEqual({ 'f:spec': { 'f:image': {} } })
  expect(fieldsOf(changed.body, 'one')).toEqual({ 'f:spec': { 'f:size': {} } })
  expect((await world.apply(PATH, config({ size: 'small', image: 'x' }), by('one'))).body.message).toContain(
    'conflict with "editor" using example.dev/v1: .spec.image',
  )
})

test('items of a keyed list belong to those who added them', async () => {
  const world = await openWidgetWorld()
  await world.apply(PATH, config({ size: 'small', parts: [{ name: 'x', weight: 1 }, { name: 'z' }] }), by('one'))
  const both = await world.apply(PATH, config({ parts: [{ name: 'y', weight: 2 }] }), by('two'))
  expect(both.body.spec.parts.map((part: any) => part.name)).toEqual(['x', 'z', 'y'])
  const left = await world.apply(PATH, config({ size: 'small', parts: [{ name: 'z' }] }), by('one'))
  expect(left.body.spec.parts.map((part: any) => part.name)).toEqual(['z', 'y'])
})

test('the status has separate owners', async () => {
  const world = await openWidgetWorld()
  await world.apply(PATH, config({ size: 'small' }), by('one'))
  const status = await world.apply(
    `${PATH}/status`,
    { apiVersion: 'example.dev/v1', kind: 'Widget', metadata: { name: 'a' }, status: { replicas: 2 } },
    by('controller'),
  )
  expect(fieldsOf(status.body, 'controller', 'status')).toEqual({ 'f:status': { 'f:replicas': {} } })
  expect(status.body.spec.size).toBe('small')
})

test('applying the same again changes nothing', async () => {
  const world = await openWidgetWorld()
  const first = await world.apply(PATH, config({ size: 'small' }), by('one'))
  const again = await world.apply(PATH, config({ size: 'small' }), by('one'))
  expect(again.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion)
})

test('a configuration may hold only declared fields, and each key once', async () => {
  const world = await openWidgetWorld()
  const unknown = await world.apply(PATH, config({ size: 'small', bogus: 1 }), by('one'))
  expect(unknown.body).toMatchObject({
    code: 500,
    message: expect.stringContaining('.spec.bogus: field not declared in schema'),
  })
  const twice = await world.apply(PATH, config({ size: 'small', parts: [{ name: 'x' }, { name: 'x' }] }), by('one'))
  expect(twice.body.message).toContain('.spec.parts: duplicate entries for key [name="x"]')
})

test('a manager must be named', async () => {
  const world: World = await openWidgetWorld()
  expect((await world.apply(PATH, config({ size: 'small' }), '')).body.message).toContain('is required for apply patch')
})

test('the oldest of too many updaters become one', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a'))
  for (let index = 0; index < 14; index++) {
    await world.call(
      'PATCH',
      `${PATH}?fieldManager=m${index}`,
      { metadata: { labels: { [`l${index}`]: 'x' } } },
      { 'content-type': 'application/merge-patch+json' },
    )
  }
  const managers = (await world.get(PATH)).body.metadata.managedFields.map((entry: any) => entry.manager)
  expect(managers).toContain('ancient-changes')
  expect(managers.length).toBeLessThanOrEqual(11)
})
