/** What the search finds: everything that the account's lists show, by rank, and nothing of another account. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SEARCH_TYPES } from '../../../resources/search/index.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud, type Person } from '../cloud.ts'
import { makeSamples } from '../samples.ts'
import { setQuotas } from '../../accounts.ts'

interface Result {
  readonly type: string
  readonly id: string
  readonly name: string
  readonly zone: string
  readonly state: string
}

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
  ids = await makeSamples({ cloud, owner })
})
afterAll(() => cloud.close())

async function find(person: Person, query: string): Promise<readonly Result[]> {
  const reply = await person.send('GET', `/v1/search?${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body['items'] as Result[]
}

const makeNetwork = async (name: string, labels: Record<string, string> = {}): Promise<string> => {
  const made = await owner.send('POST', '/v1/networks', { body: { zone: cloud.zone, name, labels } })
  expect(made.status, made.text).toBeLessThan(300)
  return String((made.body['network'] as { readonly id: string }).id)
}

test.each(SEARCH_TYPES.map((type) => [type]))('%s: by id and by every text, as its list shows it', async (type) => {
  const path = `${type.replaceAll('_', '-')}s`
  const id = ids[path] ?? ''
  const listed = (await owner.send('GET', `/v1/${path}?id=${id}`)).body['items'] as Record<string, unknown>[]
  const [item] = listed
  expect(item?.['id']).toBe(id)
  const [first] = await find(owner, `q=${id}`)
  expect(first).toEqual({
    type,
    id,
    name: item?.['name'] ?? item?.['hostname'] ?? (item?.['title'] || undefined) ?? item?.['address'] ?? '',
    zone: item?.['zone'],
    state: item?.['state'] ?? '',
  })
  for (const field of ['name', 'hostname', 'title', 'address'])
    if (typeof item?.[field] === 'string' && item[field] !== '') {
      const results = await find(owner, `type=${type}&q=${encodeURIComponent(item[field].toUpperCase())}`)
      expect(results.map((result) => result.id)).toContain(id)
      expect(new Set(results.map((result) => result.type))).toEqual(new Set([type]))
    }
  expect(await find(stranger, `q=${id}`)).toEqual([])
})

test('the id comes first, then names that start with the text, then the rest; at most 20', async () => {
  const inside = await makeNetwork('my-needle')
  const labelled = await makeNetwork('other', { use: 'Needle' })
  const starting = await makeNetwork('needle-2')
  const exact = await makeNetwork('needle')
  expect((await find(owner, 'q=NEEDLE')).map(({ id }) => id)).toEqual([exact, starting, inside, labelled])
  const namesake = await makeNetwork(inside)
  expect((await find(owner, `q=${inside}`)).map(({ id }) => id)).toEqual([inside, namesake])
  expect((await find(owner, 'q=use%3Dneedle')).map(({ id }) => id)).toEqual([labelled])
  expect(await find(owner, 'q=needle&type=server')).toEqual([])
  expect(await find(owner, 'q=needle&type=server&type=network')).toHaveLength(4)
  await setQuotas(cloud.db, 50, { accountId: owner.accountId, name: 'networks' })
  for (let made = 0; made < 4; made++) for (const letter of 'abcdef') await makeNetwork(`haystack-${letter}${made}`)
  const many = await find(owner, 'q=haystack')
  expect(many).toHaveLength(20)
  expect(many.map(({ name }) => name)).toEqual(many.map(({ name }) => name).toSorted())
})

test('refuses what it cannot search, and who may not read', async () => {
  for (const query of ['', 'q=', 'q=%20', `q=${'x'.repeat(101)}`, 'q=a&type=invoice', 'q=a&limit=5'])
    expect(await owner.send('GET', `/v1/search?${query}`), query).toMatchObject({ status: 400 })
  const billing = await owner.token(['billing.read'])
  const asked = (token: string) =>
    cloud.send('GET', '/v1/search?q=needle', { headers: { authorization: `Bearer ${token}` } })
  expect((await asked(billing)).status).toBe(403)
  expect((await asked(await owner.token('read'))).status).toBe(200)
})
