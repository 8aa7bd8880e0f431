import { expect, test } from 'vitest'
import type { WebhookCall } from '../../../embedded/kubernetes/admission/webhooks.ts'
import { openWidgetWorld, widget, WIDGETS, type World } from './world.ts'

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const configuration = (more: object = {}) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'checks' },
  webhooks: [
    {
      name: 'check.example.dev',
      clientConfig: { url: 'https://check.test/validate' },
      rules: [
        {
          apiGroups: ['example.dev'],
          apiVersions: ['*'],
          resources: ['widgets'],
          operations: ['CREATE', 'UPDATE', 'DELETE'],
        },
      ],
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      ...more,
    },
  ],
})

interface Hooked {
  readonly world: World
  readonly asked: any[]
}

/** A world with one webhook that answers as told. */
async function hooked(answer: (request: any) => object, more: object = {}): Promise<Hooked> {
  const asked: any[] = []
  const callWebhook = async ({ body }: WebhookCall): Promise<string> => {
    const { request } = JSON.parse(body)
    asked.push(request)
    return JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: request.uid, ...answer(request) },
    })
  }
  const world = await openWidgetWorld({ callWebhook })
  expect((await world.post(CONFIGURATIONS, configuration(more))).status).toBe(201)
  return { world, asked }
}

test('a webhook sees the write and may refuse it', async () => {
  const { world, asked } = await hooked(({ object }) =>
    object.spec.size === 'large'
      ? { allowed: false, status: { code: 403, message: 'too large' } }
      : { allowed: true, warnings: ['mind the gap'] },
  )
  const refused = await world.post(WIDGETS, widget('a', { size: 'large' }))
  expect(refused.body).toMatchObject({
    code: 403,
    message: 'admission webhook "check.example.dev" denied the request: too large',
  })
  expect((await world.get(`${WIDGETS}/a`)).status).toBe(404)
  expect(asked[0]).toMatchObject({
    operation: 'CREATE',
    name: 'a',
    namespace: 'default',
    resource: { group: 'example.dev', version: 'v1', resource: 'widgets' },
    userInfo: { username: 'system:admin' },
    object: { spec: { replicas: 1 } },
    oldObject: null,
  })
  expect((await world.post(WIDGETS, widget('b'))).headers.warning).toBe('299 - "mind the gap"')
})

test('updates show both states and deletions the last one', async () => {
  const { world, asked } = await hooked(() => ({ allowed: true }))
  await world.post(WIDGETS, widget('a'))
  await world.merge(`${WIDGETS}/a`, { spec: { replicas: 2 } })
  await world.remove(`${WIDGETS}/a`)
  expect(
    asked.map(({ operation, object, oldObject }) => [operation, object?.spec.replicas, oldObject?.spec.replicas]),
  ).toEqual([
    ['CREATE', 1, undefined],
    ['UPDATE', 2, 1],
    ['DELETE', undefined, 2],
  ])
})

test('what the rules do not name is not asked about', async () => {
  const { world, asked } = await hooked(() => ({ allowed: false }), {
    objectSelector: { matchLabels: { checked: 'yes' } },
  })
  expect((await world.post(WIDGETS, widget('a'))).status).toBe(201)
  expect(
    (
      await world.post('/api/v1/namespaces/default/configmaps', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'a', labels: { checked: 'yes' } },
      })
    ).status,
  ).toBe(201)
  expect(asked).toEqual([])
  expect((await world.post(WIDGETS, widget('b', {}, { labels: { checked: 'yes' } }))).body.message).toBe(
    'admission webhook "check.example.dev" denied the request without explanation',
  )
})

test('a match condition leaves writes out, and one that makes no sense is refused', async () => {
  const conditions = (expression: string) => ({ matchConditions: [{ name: 'condition', expression }] })
  const { world, asked } = await hooked(
    () => ({ allowed: false }),
    conditions("!(request.userInfo.username in ['system:admin']) || object.metadata.name == 'b'"),
  )
  expect((await world.post(WIDGETS, widget('a'))).status).toBe(201)
  expect((await world.post(WIDGETS, widget('b'))).status).toBe(400)
  expect(asked).toHaveLength(1)
  for (const expression of ['request.', 'nobody == 1', '']) {
    expect(
      (await world.post(CONFIGURATIONS, { ...configuration(conditions(expression)), metadata: { name: 'wrong' } }))
        .status,
      expression,
    ).toBe(422)
  }
})

test.each([
  ['Fail', 500],
  ['Ignore', 201],
] as const)('a webhook that cannot be reached: %s', async (failurePolicy, status) => {
  const world = await openWidgetWorld({ callWebhook: () => Promise.reject(new Error('connection refused')) })
  await world.post(CONFIGURATIONS, configuration({ failurePolicy }))
  const answer = await world.post(WIDGETS, widget('a'))
  expect(answer.status).toBe(status)
  if (status === 500)
    expect(answer.body.message).toBe(
      'Internal error occurred: failed calling webhook "check.example.dev": connection refused',
    )
})

test('a write that another overtook while a webhook thought is computed again', async () => {
  let world: World | undefined
  let isFirst = true
  const made = await hooked(({ operation }) => {
    if (operation === 'UPDATE' && isFirst) {
      isFirst = false
      const table = world?.core.engine.store.table('example.dev/widgets')
      const object = table?.get('default/a')
      if (object)
        world?.core.engine.store.put('example.dev/widgets', 'default/a', {
          ...object,
          spec: { size: 'large', replicas: 1 },
        })
    }
    return { allowed: true }
  })
  world = made.world
  await world.post(WIDGETS, widget('a'))
  const merged = await world.merge(`${WIDGETS}/a`, { spec: { replicas: 5 } })
  expect(merged.body.spec).toEqual({ size: 'large', replicas: 5 })
})

const owned = (name: string, owner: any) =>
  widget(
    name,
    {},
    {
      ownerReferences: [
        { apiVersion: 'example.dev/v1', kind: 'Widget', name: owner.metadata.name, uid: owner.metadata.uid },
      ],
    },
  )
const conditionOf = async (world: World, type: string) =>
  (await world.get('/api/v1/namespaces/n')).body.status?.conditions?.find((one: any) => one.type === type)

test('the garbage collector asks, keeps what is refused, and tries again', async () => {
  let isProtected = true
  const { world, asked } = await hooked(({ operation, name }) => ({
    allowed: operation !== 'DELETE' || name !== 'child' || !isProtected,
    status: { code: 409, message: 'it is protected' },
  }))
  const owner = (await world.post(WIDGETS, widget('owner'))).body
  await world.post(WIDGETS, owned('child', owner))
  await world.remove(`${WIDGETS}/owner`)
  const ofChild = () => asked.filter(({ name, operation }) => name === 'child' && operation === 'DELETE')
  await expect.poll(() => ofChild().length).toBeGreaterThan(0)
  expect((await world.get(`${WIDGETS}/child`)).body.metadata.deletionTimestamp).toBeUndefined()
  isProtected = false
  await expect.poll(async () => (await world.get(`${WIDGETS}/child`)).status).toBe(404)
}, 60_000)

test('the deletion of a namespace is tried again after a refusal', async () => {
  let isProtected = true
  const { world, asked } = await hooked(({ operation, oldObject }) => ({
    allowed: operation !== 'DELETE' || oldObject.metadata.name !== 'kept' || !isProtected,
    status: { code: 409, message: 'it is protected' },
  }))
  await world.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } })
  const inside = '/apis/example.dev/v1/namespaces/n/widgets'
  for (const name of ['kept', 'later']) await world.post(inside, widget(name))
  await world.remove('/api/v1/namespaces/n')
  await expect
    .poll(() => asked.filter(({ oldObject }) => oldObject?.metadata.name === 'kept').length)
    .toBeGreaterThan(1)
  expect((await world.get(inside)).body.items.map(({ metadata }: any) => metadata.name)).toEqual(['kept', 'later'])
  isProtected = false
  await expect.poll(async () => (await world.get('/api/v1/namespaces/n')).status).toBe(404)
}, 60_000)

test('an object that changes while its namespace asks is judged again', async () => {
  let world: World | undefined
  let isFirst = true
  const made = await hooked(({ operation, oldObject }) => {
    if (operation !== 'DELETE') return { allowed: true }
    if (isFirst) {
      isFirst = false
      const table = world?.core.engine.store.table('example.dev/widgets')
      const object = table?.get('n/a')
      if (object)
        world?.core.engine.store.put('example.dev/widgets', 'n/a', { ...object, spec: { size: 'large', replicas: 1 } })
    }
    return { allowed: oldObject.spec.size !== 'large', status: { code: 409, message: 'it is large' } }
  })
  world = made.world
  await world.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } })
  await world.post('/apis/example.dev/v1/namespaces/n/widgets', widget('a'))
  await world.remove('/api/v1/namespaces/n')
  await expect
    .poll(async () => (await conditionOf(made.world, 'NamespaceDeletionContentFailure'))?.message)
    .toContain('it is large')
  expect((await world.get('/apis/example.dev/v1/namespaces/n/widgets/a')).body.metadata.deletionTimestamp).toBe(
    undefined,
  )
}, 60_000)
