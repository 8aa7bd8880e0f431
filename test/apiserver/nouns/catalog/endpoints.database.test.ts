/** What the cloud offers, as customers see it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Template, type TemplateSpec, Zone } from '../../../../resources/catalog/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
const [PAST, FUTURE] = ['2026-01-01T00:00:00Z', '2126-01-01T00:00:00Z']

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  const tiny = await cloud.admin.get(Template, { name: 'tiny-linux' })
  if (tiny === undefined) throw new Error('the catalog has no tiny-linux')
  for (const template of (await cloud.admin.list(Template)).items) await cloud.admin.delete(Template, template.metadata)
  const create = (name: string, spec: Partial<TemplateSpec> = {}) =>
    cloud.admin.create(Template, { metadata: { name }, spec: { ...tiny.spec, ...spec } })
  await cloud.admin.create(Zone, {
    metadata: { name: 'eu-1-b' },
    spec: { displayName: 'B', region: 'eu-1', isClosed: false, capabilities: [] },
  })
  await create('plain')
  await create('elsewhere', { zones: ['eu-1-b'], osFamily: 'debian' })
  await create('hidden', { hiddenAt: new Date(0).toISOString() })
  await create('old', { deprecatedAt: PAST, unavailableAt: FUTURE })
  await create('soon-old', { deprecatedAt: FUTURE })
  await create('gone', { unavailableAt: PAST })
  await create('old-and-gone', { deprecatedAt: PAST, unavailableAt: PAST })
  await until(
    'the templates to be known',
    async () => cloud.caches.of(Template).list(),
    (known) => known.some(({ metadata }) => metadata.name === 'old-and-gone'),
  )
})
afterAll(() => cloud.close())

const list = (query = '') => ada.send('GET', `/v1/templates${query}`)

describe('templates', () => {
  test.each([
    ['what new servers can be made from, but for what is outdated', '', ['elsewhere', 'plain', 'soon-old']],
    ['of a zone', '?zone=eu-1-a', ['plain', 'soon-old']],
    ['of a family', '?os_family=debian', ['elsewhere']],
    [
      'what is outdated, on request; never what nothing new is made from',
      '?include_deprecated=true',
      ['elsewhere', 'old', 'plain', 'soon-old'],
    ],
    ['and not without', '?include_deprecated=false', ['elsewhere', 'plain', 'soon-old']],
  ])('lists %s', async (_what, query, names) => {
    const { body } = await list(query)
    expect(body['items'].map(({ name }: { name: string }) => name)).toEqual(names)
    expect(body['next_cursor']).toBeNull()
  })

  test('say whether every host that may run their servers has their image', async () => {
    const statusOf = async (query: string) => {
      const { items } = (await list(query)).body as { items: { name: string; image_status: string }[] }
      return items.find(({ name }) => name === 'plain')?.image_status
    }
    expect([await statusOf(''), await statusOf('?zone=eu-1-a')]).toEqual(['not_built', 'not_built'])
    const status = { builtTemplates: ['plain'] }
    const build = async (name: string) =>
      cloud.caches.of(Zone).apply(await cloud.admin.patch(Zone, { name }, { status }, 'status'))
    await build('eu-1-a')
    expect([await statusOf(''), await statusOf('?zone=eu-1-a')]).toEqual(['not_built', 'built'])
    await build('eu-1-b')
    expect([await statusOf(''), await statusOf('?zone=eu-1-a')]).toEqual(['built', 'built'])
  })

  test('of a zone that is not there are refused', async () =>
    expect((await list('?zone=nowhere')).body).toMatchObject({ status: 400, errors: [{ field: 'zone' }] }))

  test('that a server may have been made from are read by name, also when they are no longer listed', async () => {
    expect((await ada.send('GET', '/v1/templates/gone')).body).toMatchObject({
      template: { name: 'gone', unavailable_at: PAST },
    })
    expect((await ada.send('GET', '/v1/templates/hidden')).status).toBe(404)
  })

  test('from which nothing new is made are refused for a new server', async () => {
    const reply = await ada.send('POST', '/v1/servers', {
      body: { zone: cloud.zone, hostname: 'web', plan: 'tiny', template: 'gone' },
    })
    expect(reply.body).toMatchObject({ status: 400, errors: [{ field: 'template' }] })
  })
})
