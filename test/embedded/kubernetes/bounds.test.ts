/** What one request may cost: size, nesting, and the texts of refusals. */
import { expect, test } from 'vitest'
import { silentLog } from '../../../kit/sys/log.ts'
import { openWidgetWorld, widget, WIDGETS, type World } from './world.ts'

const doubling = (times: number) =>
  Array.from({ length: times }, (_each, index) => ({ op: 'copy', from: '/spec/free', path: `/spec/free/c${index}` }))
const jsonPatch = (world: World, operations: unknown) =>
  world.call('PATCH', `${WIDGETS}/a`, operations, { 'content-type': 'application/json-patch+json' })

test('a JSON patch whose copies double the object is refused before it has grown', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a', { free: { text: 'x'.repeat(1_000) } }))
  expect((await jsonPatch(world, doubling(4))).status).toBe(200)
  const refused = await jsonPatch(world, doubling(26))
  expect(refused.body).toMatchObject({ code: 422, message: expect.stringContaining('accumulated size increase') })
  expect((await world.get(`${WIDGETS}/a`)).text.length).toBeLessThan(100_000)
})

test('copies may not nest an object without end', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a', { free: {} }))
  const nesting = Array.from({ length: 9 }, () => ({ op: 'copy', from: '/spec/free', path: '/spec/free/a' }))
  expect((await jsonPatch(world, nesting)).status).toBe(200)
  const path = (levels: number) => `/spec/free${'/a'.repeat(levels)}`
  const deepening = Array.from({ length: 300 }, (_each, level) => ({ op: 'add', path: path(level + 10), value: {} }))
  expect((await jsonPatch(world, deepening)).body).toMatchObject({
    code: 400,
    message: expect.stringContaining('nested deeper than 200 levels'),
  })
})

test('aliases of YAML may not multiply a body', async () => {
  const world = await openWidgetWorld()
  const items = Array.from({ length: 90 }, () => '*long').join(', ')
  const yaml = `apiVersion: example.dev/v1
kind: Widget
metadata: {name: a}
spec: {size: small, free: {long: &long ${'x'.repeat(100_000)}, items: [${items}]}}
`
  const refused = await world.call('POST', WIDGETS, yaml, { 'content-type': 'application/yaml' })
  expect(refused.status).toBe(413)
})

test('deeply nested bodies are refused in every format, and nothing is logged as a bug', async () => {
  const errors: string[] = []
  const log = { ...silentLog, error: (message: string) => void errors.push(message) }
  const world = await openWidgetWorld({ log })
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  const body = `{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"a"},"spec":${nested(100_000)}}`
  for (const type of ['application/json', 'application/yaml'])
    expect((await world.call('POST', WIDGETS, body, { 'content-type': type })).status).toBe(400)
  const head = 'apiVersion: example.dev/v1\nkind: Widget\nmetadata: {name: a}\n'
  const flow = `${head}spec: ${'{a: '.repeat(400)}1${'}'.repeat(400)}`
  expect((await world.call('POST', WIDGETS, flow, { 'content-type': 'application/yaml' })).status).toBe(400)
  expect((await world.apply(`${WIDGETS}/a`, flow)).status).toBe(400)
  expect(errors).toEqual([])
})

test('error texts show the beginning of long values, and a bounded number of faults', async () => {
  const world = await openWidgetWorld()
  const long = await world.post(WIDGETS, widget('a', { image: 'x'.repeat(1_000_000) }))
  expect([long.status, long.text.length < 20_000]).toEqual([422, true])
  const faults = Object.fromEntries(Array.from({ length: 20_000 }, (_each, index) => [`unknown${index}`, 1]))
  const many = await world.call('POST', `${WIDGETS}?fieldValidation=Strict`, widget('a', faults), {
    'content-type': 'application/json',
  })
  expect([many.status, many.text.length < 20_000]).toEqual([400, true])
  const patched = await world.call('POST', WIDGETS, widget('b', faults), { 'content-type': 'application/json' })
  expect([patched.status, (patched.headers['warning'] ?? '').length < 20_000]).toEqual([201, true])
})

test('a quota counts objects of its namespace, for any creator and number of requests at once', async () => {
  const world = await openWidgetWorld()
  const names = (hard: object) => ({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'few' },
    spec: { hard },
  })
  const hard = { 'count/secrets': '2', configmaps: '1', 'count/widgets.example.dev': '0' }
  expect((await world.post('/api/v1/namespaces/default/resourcequotas', names(hard))).status).toBe(201)
  const secret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name } })
  const made = await Promise.all(
    ['a', 'b', 'c', 'd'].map((name) => world.post('/api/v1/namespaces/default/secrets', secret(name))),
  )
  expect(made.map(({ status }) => status).toSorted()).toEqual([201, 201, 403, 403])
  expect(made.find(({ status }) => status === 403)?.body).toMatchObject({
    reason: 'Forbidden',
    message: expect.stringContaining('exceeded quota: few, requested: count/secrets=1, used: count/secrets=2'),
  })
  // Server-side apply and another group are no way around it, and changing what is there takes nothing.
  expect(
    (
      await world.apply(
        `${WIDGETS}/a`,
        'apiVersion: example.dev/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: small}\n',
      )
    ).status,
  ).toBe(403)
  const first = made.find(({ status }) => status === 201)?.body as { metadata: { name: string } }
  const path = `/api/v1/namespaces/default/secrets/${first.metadata.name}`
  const type = { 'content-type': 'application/merge-patch+json' }
  expect((await world.call('PATCH', path, { metadata: { labels: { a: 'b' } } }, type)).status).toBe(200)
  expect((await world.call('DELETE', path)).status).toBe(200)
  expect((await world.post('/api/v1/namespaces/default/secrets', secret('e'))).status).toBe(201)
})
