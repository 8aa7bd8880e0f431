import { expect, test } from 'vitest'
import { withMetadata, type KubeObject } from '../../../embedded/kubernetes/core/object.ts'
import { openWidgetWorld, openWorld, widget, widgetDefinition, WIDGETS, type World } from './world.ts'

const names = async (world: World, path = WIDGETS) =>
  (await world.get(path)).body.items.map((item: any) => item.metadata.name)
const owned = (name: string, owner: any, more: object = {}) =>
  widget(
    name,
    {},
    {
      ownerReferences: [
        { apiVersion: 'example.dev/v1', kind: 'Widget', name: owner.metadata.name, uid: owner.metadata.uid, ...more },
      ],
    },
  )

test('dependents go with their owner, and theirs with them', async () => {
  const world = await openWidgetWorld()
  const owner = (await world.post(WIDGETS, widget('owner'))).body
  const child = (await world.post(WIDGETS, owned('child', owner))).body
  await world.post(WIDGETS, owned('grandchild', child))
  await world.remove(`${WIDGETS}/owner`)
  await expect.poll(() => names(world)).toEqual([])
})

test('an object whose owner does not exist goes', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, owned('lost', { metadata: { name: 'nobody', uid: 'no-such-uid' } }))
  await expect.poll(() => names(world)).toEqual([])
})

test('an object with another owner stays and forgets the deleted one', async () => {
  const world = await openWidgetWorld()
  const one = (await world.post(WIDGETS, widget('one'))).body
  const two = (await world.post(WIDGETS, widget('two'))).body
  const child = widget(
    'child',
    {},
    {
      ownerReferences: [one, two].map(({ metadata }) => ({
        apiVersion: 'example.dev/v1',
        kind: 'Widget',
        name: metadata.name,
        uid: metadata.uid,
      })),
    },
  )
  await world.post(WIDGETS, child)
  await world.remove(`${WIDGETS}/one`)
  await expect
    .poll(async () => (await world.get(`${WIDGETS}/child`)).body.metadata.ownerReferences)
    .toMatchObject([{ name: 'two' }])
})

test('in the foreground the owner waits for dependents that block it', async () => {
  const world = await openWidgetWorld()
  const owner = (await world.post(WIDGETS, widget('owner'))).body
  const child = owned('child', owner, { blockOwnerDeletion: true })
  // as loose as every test object
  await world.post(WIDGETS, withMetadata(child as KubeObject, { finalizers: ['example.dev/hold'] }))
  const asked = await world.remove(`${WIDGETS}/owner`, { propagationPolicy: 'Foreground' })
  expect(asked.body.metadata.finalizers).toEqual(['foregroundDeletion'])
  await expect.poll(async () => (await world.get(`${WIDGETS}/child`)).body.metadata.deletionTimestamp).toBeDefined()
  expect(await names(world)).toEqual(['child', 'owner'])
  await world.merge(`${WIDGETS}/child`, { metadata: { finalizers: null } })
  await expect.poll(() => names(world)).toEqual([])
})

test('orphans keep living without their owner', async () => {
  const world = await openWidgetWorld()
  const owner = (await world.post(WIDGETS, widget('owner'))).body
  await world.post(WIDGETS, owned('child', owner))
  await world.remove(`${WIDGETS}/owner`, { propagationPolicy: 'Orphan' })
  await expect.poll(() => names(world)).toEqual(['child'])
  expect((await world.get(`${WIDGETS}/child`)).body.metadata.ownerReferences).toBeUndefined()
})

test('a namespace takes its contents with it and admits nothing until then', async () => {
  const world = await openWidgetWorld()
  await world.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } })
  const inside = '/apis/example.dev/v1/namespaces/n/widgets'
  await world.post(inside, widget('held', {}, { finalizers: ['example.dev/hold'] }))
  await world.post(inside, widget('free'))
  expect((await world.remove('/api/v1/namespaces/n')).body.status.phase).toBe('Terminating')
  await expect.poll(() => names(world, inside)).toEqual(['held'])
  expect((await world.post(inside, widget('late'))).body).toMatchObject({
    code: 403,
    details: { causes: [{ reason: 'NamespaceTerminating' }] },
  })
  await world.merge(`${inside}/held`, { metadata: { finalizers: null } })
  await expect.poll(async () => (await world.get('/api/v1/namespaces/n')).status).toBe(404)
})

test('a definition takes its objects with it', async () => {
  const world = await openWidgetWorld()
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.dev'
  await world.post(WIDGETS, widget('a'))
  await world.remove(path)
  await expect.poll(async () => (await world.get(path)).status).toBe(404)
  expect((await world.get(WIDGETS)).status).toBe(404)
  await world.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition)
  expect(await names(world)).toEqual([])
})

test('a finalizer holds an object until it is taken away', async () => {
  const world = await openWorld()
  const path = '/api/v1/namespaces/default/configmaps'
  await world.post(path, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', finalizers: ['example.dev/hold'] },
  })
  expect((await world.remove(`${path}/a`)).body.metadata.deletionGracePeriodSeconds).toBe(0)
  expect(
    (await world.merge(`${path}/a`, { metadata: { finalizers: ['example.dev/hold', 'example.dev/late'] } })).status,
  ).toBe(422)
  await world.merge(`${path}/a`, { metadata: { finalizers: [] } })
  expect((await world.get(`${path}/a`)).status).toBe(404)
})
