/** What every list can be asked for, by a loop over the list of routes: by the fields of its items. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isPlainRead } from '../../kit/http/representation.ts'
import type { Route } from '../../kit/http/route.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { ROUTES } from '../../resources/index.ts'
import { isSearched, itemOf } from '../../resources/kit/filters.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud, type Person } from './cloud.ts'
import { makeSamples } from './samples.ts'

type Item = Readonly<Record<string, unknown>>

const database = useDatabase()
let cloud: Cloud
let owner: Person
let stranger: Person
let ids: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ;[owner, stranger] = (await Promise.all([
    cloud.signUp('owner@example.com'),
    cloud.signUp('stranger@example.com'),
  ])) as [Person, Person]
  ids = { ...(await makeSamples({ cloud, owner })), buckets: await newBucket() }
})
afterAll(() => cloud.close())

/** A bucket with an object; its name. */
async function newBucket(): Promise<string> {
  const { body } = await owner.send('GET', '/v1/object-storage')
  const name = `${body['items'][0].bucket_prefix}photos`
  const created = await owner.send('POST', `/v1/object-storage/${cloud.zone}/buckets`, { body: { name } })
  expect(created.status, created.text).toBe(201)
  cloud.objectStorage.buckets.get(name)?.add('a.txt')
  return name
}

const LISTS = ROUTES.filter((route) => route.audience === 'customer' && itemOf(route) !== undefined)
const fieldsOf = (route: Route): Readonly<Record<string, z.ZodType>> => {
  const item = itemOf(route)
  return item instanceof z.ZodObject ? (item.shape as Readonly<Record<string, z.ZodType>>) : {} // a shape is of schemas
}
const parametersOf = ({ query }: Route): readonly string[] =>
  query instanceof z.ZodObject ? Object.keys(query.shape) : []

/** Lists that have no item here, and why. */
const EMPTY: Readonly<Record<string, string>> = {
  list_invoices: 'no month has ended',
  list_billing_log: 'nothing was metered',
  list_database_backups: 'no host has made one',
  list_kubernetes_cluster_snapshots: 'no control plane has made one',
}

const pathOf = (route: Route): string =>
  route.path.replaceAll(/\/([a-z-]+)\/\{\w+\}/g, (_all, noun: string) => `/${noun}/${ids[noun] ?? ''}`)

async function ask(person: Person, route: Route, query: string): Promise<readonly Item[]> {
  const reply = await person.send('GET', `${pathOf(route)}?${query}`)
  expect(reply.status, `${route.id} ${query}: ${reply.text}`).toBe(200)
  return reply.body['items'] as Item[]
}

/** All pages. */
async function askAll(person: Person, route: Route, query = ''): Promise<readonly Item[]> {
  const found: Item[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const reply = await person.send('GET', `${pathOf(route)}?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`)
    expect(reply.status, `${route.id} ${query}: ${reply.text}`).toBe(200)
    found.push(...(reply.body['items'] as Item[]))
    cursor = reply.body['next_cursor'] as string | null
  }
  return found
}
const idOf = (item: Item): unknown => item['id'] ?? item['user_id'] ?? item['name']
const listed = (items: readonly Item[]): readonly unknown[] => items.map(idOf)

const textsOf = (item: Item): readonly string[] =>
  Object.entries(item).flatMap(([name, value]) =>
    !isSearched(name) || value === null
      ? []
      : typeof value === 'string'
        ? [value].filter((text) => text !== '')
        : typeof value === 'object'
          ? Object.entries(value).map(([key, label]) => `${key}=${String(label)}`)
          : [],
  )
const contains = (item: Item, text: string): boolean =>
  [String(item['id'] ?? ''), ...textsOf(item)].some((each) => each.toLowerCase().includes(text.toLowerCase()))

test('a list has a parameter for each field of its items that it can be asked by', () => {
  const missing = LISTS.flatMap((route) => {
    const fields = fieldsOf(route)
    const expected = [
      ...(fields['id'] === undefined || route.path.includes('{id}') ? [] : ['id']),
      ...(fields['name'] === undefined ? [] : ['name']),
      ...(fields['zone'] === undefined ? [] : ['zone']),
      ...(fields['labels'] === undefined ? [] : ['label']),
      ...(fields['state'] === undefined ? [] : ['state']),
      ...(Object.keys(fields).some(isSearched) ? ['q'] : []),
    ]
    return expected.filter((name) => !parametersOf(route).includes(name)).map((name) => `${route.id} ${name}`)
  })
  expect(missing).toEqual([])
})

describe.each(LISTS.map((route) => [route.id, route] as const))('%s', (id, route) => {
  const has = (name: string) => parametersOf(route).includes(name)

  test('has items to be asked for', async () => {
    expect((await askAll(owner, route)).length > 0, id).toBe(!(id in EMPTY))
  })

  if (has('id'))
    test('by ids, of the account only', async () => {
      const all = await askAll(owner, route)
      for (const item of all.slice(0, 3))
        expect(listed(await ask(owner, route, `id=${String(item['id'])}`))).toEqual([item['id']])
      const wanted = all.slice(0, 50).map((item) => item['id'])
      expect(listed(await askAll(owner, route, wanted.map((each) => `id=${String(each)}`).join('&')))).toEqual(wanted)
      expect(await ask(owner, route, 'id=00000000-0000-4000-8000-00000000dead')).toEqual([])
      if (!['list_templates', ...Object.keys(EMPTY)].includes(id))
        expect(await ask(stranger, route, wanted.map((each) => `id=${String(each)}`).join('&'))).toEqual([])
      for (const query of ['id=', 'id=%2F..', Array.from({ length: 51 }, () => 'id=a').join('&')])
        expect(await owner.send('GET', `${pathOf(route)}?${query}`)).toMatchObject({ status: 400 })
    })

  if (has('zone'))
    test('by a zone, which exists', async () => {
      const all = await askAll(owner, route)
      if (fieldsOf(route)['zone'] !== undefined)
        for (const { metadata } of cloud.caches.of(Zone).list())
          expect(listed(await askAll(owner, route, `zone=${metadata.name}`))).toEqual(
            listed(all.filter((item) => item['zone'] === metadata.name)),
          )
      expect(await owner.send('GET', `${pathOf(route)}?zone=nowhere`)).toMatchObject({
        status: 400,
        body: { errors: [{ field: 'zone' }] },
      })
    })

  if (has('name'))
    test('by its exact name', async () => {
      const all = await askAll(owner, route)
      for (const { name } of all.slice(0, 2)) {
        const asked = await askAll(owner, route, `name=${encodeURIComponent(String(name))}`)
        expect(listed(asked)).toEqual(listed(all.filter((item) => item['name'] === name)))
        expect(await ask(owner, route, `name=${encodeURIComponent(String(name).slice(0, -1))}-`)).toEqual([])
      }
    })

  if (has('label'))
    test('by labels, all of which it must have', async () => {
      const all = await askAll(owner, route)
      for (const item of all) {
        const labels = Object.entries(item['labels'] as Record<string, string>).map(
          ([key, value]) => `label=${encodeURIComponent(`${key}=${value}`)}`,
        )
        if (labels.length > 0) expect(listed(await askAll(owner, route, labels.join('&')))).toContain(item['id'])
        expect(await ask(owner, route, [...labels, 'label=nobody%3Dhas-it'].join('&'))).toEqual([])
      }
      expect(await owner.send('GET', `${pathOf(route)}?label=no-value`)).toMatchObject({ status: 400 })
    })

  if (has('state'))
    test('by states', async () => {
      const all = await askAll(owner, route)
      const { options } = fieldsOf(route)['state'] as z.ZodEnum
      for (const state of options)
        expect(listed(await askAll(owner, route, `state=${state}`)), String(state)).toEqual(
          listed(all.filter((item) => item['state'] === state)),
        )
      expect(listed(await askAll(owner, route, options.map((state) => `state=${state}`).join('&')))).toEqual(
        listed(all),
      )
      expect(await owner.send('GET', `${pathOf(route)}?state=excellent`)).toMatchObject({
        status: 400,
        body: { errors: [{ field: expect.stringMatching(/^state/) }] },
      })
    })

  if (has('q'))
    test('by a part of a name, an address, a label or an id', async () => {
      const all = await askAll(owner, route)
      const texts = new Set(
        all.slice(0, 3).flatMap((item) => [...textsOf(item), String(item['id'] ?? textsOf(item)[0])]),
      )
      for (const text of texts) {
        const part = text.slice(Math.floor(text.length / 4), Math.floor(text.length / 4) + 100).toUpperCase()
        if (part.trim() === '') continue
        const found = listed(await askAll(owner, route, `q=${encodeURIComponent(part)}`))
        expect(found, part).toEqual(listed(all.filter((item) => contains(item, part.trim()))))
        expect(found.length, part).toBeGreaterThan(0)
        if (has('limit'))
          expect(listed(await askAll(owner, route, `limit=1&q=${encodeURIComponent(part)}`))).toEqual(found)
      }
      expect(await ask(owner, route, 'q=there-is-nothing-like-that')).toEqual([])
      for (const query of ['q=', 'q=%20', `q=${'x'.repeat(101)}`, 'q=a&q=b'])
        expect(await owner.send('GET', `${pathOf(route)}?${query}`)).toMatchObject({ status: 400 })
    })

  if (isPlainRead(route))
    test('is not sent to a client that has it', async () => {
      const first = await owner.send('GET', pathOf(route))
      const again = await owner.send('GET', pathOf(route), {
        headers: { 'if-none-match': String(first.headers['etag']) },
      })
      // reading operations and audit entries does not change them either
      expect([again.status, again.text]).toEqual([304, ''])
      expect(again.headers['etag']).toBe(first.headers['etag'])
    })
})

describe('the logs', () => {
  const routeOf = (id: string): Route => {
    const route = LISTS.find((each) => each.id === id)
    if (route === undefined) throw new Error(`there is no list ${id}`)
    return route
  }
  /** What the log answers to a query, against what it should of everything. */
  async function expectOf(route: Route, query: string, isWanted: (item: Item) => boolean): Promise<void> {
    const all = await askAll(owner, route)
    const expected = all.filter(isWanted)
    expect(expected.length, query).toBeGreaterThan(0)
    expect(expected.length, query).toBeLessThan(all.length)
    expect(listed(await askAll(owner, route, query)), query).toEqual(listed(expected))
  }

  test('operations by kinds, states and times', async () => {
    const route = routeOf('list_operations')
    const [first, ...others] = (await askAll(owner, route)).toReversed().slice(1) as [Item, ...Item[]]
    const from = String(first['created_at'])
    const to = others.map((item) => String(item['created_at'])).find((at) => at > from) ?? ''
    await expectOf(route, 'kind=server.create', ({ kind }) => kind === 'server.create')
    await expectOf(route, 'kind=server.create&kind=storage.create', ({ kind }) =>
      ['server.create', 'storage.create'].includes(String(kind)),
    )
    await expectOf(route, `from=${to}`, (item) => String(item['created_at']) >= to)
    await expectOf(route, `to=${to}`, (item) => String(item['created_at']) < to)
    await expectOf(
      route,
      `from=${from}&to=${to}&kind=${String(first['kind'])}`,
      (item) => item['kind'] === first['kind'] && String(item['created_at']) >= from && String(item['created_at']) < to,
    )
    const all = await askAll(owner, route)
    const states = ['pending', 'running', 'succeeded', 'failed', 'cancelled']
    for (const status of states)
      expect(listed(await askAll(owner, route, `status=${status}`))).toEqual(
        listed(all.filter((item) => item['status'] === status)),
      )
    expect(listed(await askAll(owner, route, states.map((status) => `status=${status}`).join('&')))).toEqual(
      listed(all),
    )
    for (const query of ['kind=server.paint', 'status=good', 'from=yesterday'])
      expect(await owner.send('GET', `/v1/operations?${query}`)).toMatchObject({ status: 400 })
  })

  test('audit entries by action, resource, actor, outcome and time', async () => {
    const route = routeOf('list_audit_entries')
    const token = await owner.token('read')
    const refused = await cloud.send('DELETE', `/v1/servers/${ids['servers'] ?? ''}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(refused.status).toBe(403)
    const all = await askAll(owner, route)
    const denied = all.find((item) => item['outcome'] === 'denied')
    await expectOf(route, 'action=server.create', ({ action }) => action === 'server.create')
    await expectOf(route, 'action=server.create&action=network.create', ({ action }) =>
      ['server.create', 'network.create'].includes(String(action)),
    )
    await expectOf(route, 'resource=server', (item) => item['resource_type'] === 'server')
    await expectOf(route, `resource=server:${ids['servers'] ?? ''}`, (item) => item['resource_id'] === ids['servers'])
    await expectOf(route, 'outcome=denied', ({ outcome }) => outcome === 'denied')
    await expectOf(route, 'outcome=denied&resource=server', (item) => item['outcome'] === 'denied')
    await expectOf(
      route,
      `actor=${encodeURIComponent(String(denied?.['token_name']))}`,
      (item) => item['token_name'] === denied?.['token_name'],
    )
    expect(await askAll(owner, route, `actor=${stranger.userId}`)).toEqual([])
    const at = String(all[Math.floor(all.length / 2)]?.['at'])
    await expectOf(route, `from=${at}`, (item) => String(item['at']) >= at)
    await expectOf(route, `to=${at}`, (item) => String(item['at']) < at)
    for (const query of ['outcome=good', 'action=server', 'resource=Server:1', 'from=yesterday', 'actor='])
      expect(await owner.send('GET', `/v1/audit?${query}`)).toMatchObject({ status: 400 })
  })
})
