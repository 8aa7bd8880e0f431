/** The operators' routes of templates, and what customers see of them. No controllers run: tests say what they would.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Template, type TemplateStatus, Zone } from '../../../../resources/catalog/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'

const OTHER_ZONE = 'eu-1-b'
const CHECKSUM = 'A'.repeat(64)
const database = useDatabase()
let cloud: Cloud
let ada: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  const verbs = ['get', 'list', 'create', 'update', 'delete']
  await cloud.grant('olga', [{ resources: ['templates', 'operations'], verbs }])
  await cloud.grant('rita', [{ resources: ['templates'], verbs: ['get', 'list'] }])
  const spec = { displayName: 'B', region: 'eu-1', isClosed: false, capabilities: [] }
  cloud.caches.of(Zone).apply(await cloud.admin.create(Zone, { metadata: { name: OTHER_ZONE }, spec }))
})
afterAll(() => cloud.close())

const olga = (method: string, path = '', body?: unknown): Promise<Reply> =>
  cloud.operate('olga', method, `/v1/operator/templates${path}`, body)
let made = 0
const BODY = {
  title: 'Debian 12',
  source_url: 'https://images.example.com/debian-12.qcow2',
  checksum_sha256: CHECKSUM,
  os_family: 'debian',
  default_user: 'debian',
}
const make = (more: object = {}) =>
  olga('POST', '', { name: `debian-${(made += 1)}`, ...BODY, zones: [cloud.zone], ...more })
const stored = async (name: string) => {
  const template = await cloud.admin.get(Template, { name })
  if (template === undefined) throw new Error('there is no such template')
  return template
}
/** As its controller does. */
async function reported(name: string, status: Partial<TemplateStatus>): Promise<void> {
  const { operation: stanza } = (await stored(name)).spec
  if (stanza === undefined) throw new Error('it has no operation')
  const { id, kind, actor, requestedAt, deadlineAt } = stanza
  const operation = {
    id,
    kind,
    actor,
    status: 'succeeded',
    step: 'fetched',
    stepIndex: 1,
    stepCount: 2,
    error: '',
    createdAt: requestedAt,
    deadlineAt,
    finishedAt: requestedAt,
  }
  const patch = { status: { observedGeneration: 1, operation, ...status } } as object
  cloud.caches.of(Template).apply(await cloud.admin.patch(Template, { name }, patch, 'status'))
}
async function online(more: object = {}): Promise<string> {
  const { name } = (await make(more)).body['template']
  await reported(name, { state: 'online', zones: [cloud.zone], sizeGibibytes: 1 })
  return name
}
const seenBy = async (person: Person, query = '') =>
  (await person.send('GET', `/v1/templates${query}`)).body['items'].map((one: { name: string }) => one.name)
const createServer = (template: string, zone = cloud.zone) =>
  ada.send('POST', '/v1/servers', {
    body: { zone, hostname: `web-${(made += 1)}`, plan: 'tiny', template, ssh_keys: [PUBLIC_KEY] },
  })
const badField = (field: string) => ({ status: 400, errors: [{ field }] })
const problem = (status: number, reason: string) => ({ status, reason })

describe('create_template', () => {
  test('is offered to customers once its zones have it', async () => {
    const reply = await make()
    expect(reply.status, reply.text).toBe(202)
    const { template, operation } = reply.body
    expect(operation).toMatchObject({ kind: 'template.create', template_id: template.id, status: 'pending' })
    expect(template).toMatchObject({
      state: 'creating',
      source: { kind: 'url', url: BODY.source_url, checksum_sha256: CHECKSUM.toLowerCase() },
      zones: [cloud.zone],
      image_status: 'not_built',
    })
    expect(await seenBy(ada)).not.toContain(template.name)
    expect((await ada.send('GET', `/v1/templates/${template.name}`)).status).toBe(404)
    expect((await createServer(template.name)).body).toMatchObject(badField('template'))

    await reported(template.name, { state: 'online', zones: [cloud.zone], sizeGibibytes: 1 })
    expect(await seenBy(ada)).toContain(template.name)
    const { body } = await ada.send('GET', `/v1/templates/${template.name}`)
    expect(body['template']).toMatchObject({ image_status: 'built', zones: [cloud.zone], min_storage_gibibytes: 1 })
    expect((await createServer(template.name)).body).toMatchObject(badField('plan')) // the plan has less than 512 MiB
  })

  test('an image that is larger than the disk of the plan is refused with it', async () => {
    const name = await online({ min_memory_mebibytes: 128 })
    expect((await createServer(name)).status).toBe(202)
    await reported(name, { state: 'online', zones: [cloud.zone], sizeGibibytes: 2 })
    expect((await createServer(name)).body).toMatchObject(badField('storage_gibibytes'))
    expect((await createServer(name, OTHER_ZONE)).body).toMatchObject(badField('template'))
  })

  test.each<readonly [string, object, object]>([
    ['a name that is taken', { name: 'tiny-linux' }, problem(409, 'in_use')],
    ['a name that no host could have', { name: 'Debian' }, badField('name')],
    ['a file by http', { source_url: 'http://images.example.com/disk' }, badField('source_url')],
    ['a file without its checksum', { checksum_sha256: undefined }, badField('checksum_sha256')],
    ['no zone', { zones: [] }, badField('zones')],
    ['a zone that is not there', { zones: ['nowhere'] }, badField('zones.0')],
  ])('refuses %s', async (_what, more, expected) => {
    const before = (await olga('GET')).body['items'].length
    expect((await make(more)).body).toMatchObject(expected)
    expect((await olga('GET')).body['items'].length).toBe(before)
  })
})

describe('update_template', () => {
  test('deprecates and hides, and takes both back', async () => {
    const name = await online()
    const past = '2026-01-01T00:00:00Z'
    const change = async (body: object) => (await olga('PATCH', `/${name}`, body)).body['template']
    expect(await change({ deprecated_at: past })).toMatchObject({ deprecated_at: past, hidden_at: null })
    expect([await seenBy(ada), await seenBy(ada, '?include_deprecated=true')]).toEqual([
      expect.not.arrayContaining([name]),
      expect.arrayContaining([name]),
    ])
    await change({ deprecated_at: null, hidden_at: past })
    expect(await seenBy(ada, '?include_deprecated=true')).not.toContain(name)
    expect((await olga('GET')).body['items']).toContainEqual(expect.objectContaining({ name, hidden_at: past }))
    expect(await change({ hidden_at: null })).toMatchObject({ deprecated_at: null, hidden_at: null })
    expect(await seenBy(ada)).toContain(name)
    // Those that nodes build can be hidden too.
    await olga('PATCH', '/tiny-linux', { hidden_at: past })
    expect(await seenBy(ada)).not.toContain('tiny-linux')
    await olga('PATCH', '/tiny-linux', { hidden_at: null })
  })

  test.each<readonly [string, string, object, object]>([
    ['one that is not there', 'nothing', { hidden_at: null }, { status: 404 }],
    ['its image', 'tiny-linux', { source_url: BODY.source_url }, badField('source_url')],
    ['an instant that is none', 'tiny-linux', { hidden_at: 'soon' }, badField('hidden_at')],
  ])('does not change %s', async (_what, name, body, expected) => {
    expect((await olga('PATCH', `/${name}`, body)).body).toMatchObject(expected)
  })
})

describe('copy_template', () => {
  test('adds the zone, where servers are made from it once that has it', async () => {
    const name = await online({ min_memory_mebibytes: 128 })
    const { status, body, text } = await olga('POST', `/${name}/copy`, { zone: OTHER_ZONE })
    expect([status, body['operation']?.kind], text).toEqual([202, 'template.copy'])
    expect(body['template']).toMatchObject({ state: 'online', zones: [cloud.zone, OTHER_ZONE] })
    expect((await createServer(name)).status).toBe(202)
    expect((await createServer(name, OTHER_ZONE)).body).toMatchObject(badField('template'))
    expect((await olga('POST', `/${name}/copy`, { zone: OTHER_ZONE })).body).toMatchObject(badField('zone'))
    expect((await olga('DELETE', `/${name}`)).body).toMatchObject(problem(409, 'operation_in_progress'))
  })

  test.each<readonly [string, () => Promise<string>, string, object]>([
    ['to a zone that is not there', () => online(), 'nowhere', badField('zone')],
    ['to one that it is in', () => online(), 'eu-1-a', badField('zone')],
    ['of all zones', async () => 'tiny-linux', OTHER_ZONE, badField('zone')],
    ['that is not there', async () => 'nothing', OTHER_ZONE, { status: 404 }],
    [
      'before it is online',
      async () => (await make()).body['template'].name,
      OTHER_ZONE,
      problem(409, 'operation_in_progress'),
    ],
    [
      'that could not be fetched',
      async () => {
        const name = await online()
        await reported(name, { state: 'error' })
        return name
      },
      OTHER_ZONE,
      problem(409, 'state_not_allowed'),
    ],
  ])('does not copy one %s', async (_why, which, zone, expected) => {
    expect((await olga('POST', `/${await which()}/copy`, { zone })).body).toMatchObject(expected)
  })
})

test('delete_template offers it no more at once, and only once', async () => {
  const name = await online({ min_memory_mebibytes: 128 })
  const { status, body } = await olga('DELETE', `/${name}`)
  expect([status, body['operation']?.kind]).toEqual([202, 'template.delete'])
  expect((await createServer(name)).body).toMatchObject(badField('template'))
  expect((await olga('DELETE', `/${name}`)).body).toMatchObject(problem(409, 'operation_in_progress'))
  expect((await olga('DELETE', '/nothing')).status).toBe(404)
})

test('only people with the rights for it change templates, and customers see none of the routes', async () => {
  const rita = (method: string, path = '', body?: unknown) =>
    cloud.operate('rita', method, `/v1/operator/templates${path}`, body)
  expect((await rita('GET')).status).toBe(200)
  for (const [method, path, body] of [
    ['POST', '', { name: 'no', ...BODY, zones: [cloud.zone] }],
    ['PATCH', '/tiny-linux', { hidden_at: null }],
    ['POST', '/tiny-linux/copy', { zone: OTHER_ZONE }],
    ['DELETE', '/tiny-linux', undefined],
  ] as const)
    expect((await rita(method, path, body)).status).toBe(403)
  expect((await ada.send('GET', '/v1/operator/templates')).status).toBe(404)
})
