import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
})
afterAll(() => cloud.close())

const SCRIPT = '#!/bin/sh\necho "grüße"\n'
let made = 0
const add = (more: object = {}, by: Person = ada) =>
  by.send('POST', '/v1/init-scripts', { body: { name: `script ${(made += 1)}`, content: SCRIPT, ...more } })
const added = async (more: object = {}): Promise<{ readonly id: string; readonly name: string }> =>
  (await add(more)).body['init_script']
const used = async () => (await listQuotas(cloud.db, ada.accountId)).find(({ name }) => name === 'init_scripts')?.used

describe('an init script', () => {
  test('is made, read, changed and deleted; each change has an entry, none of which contains the content', async () => {
    const usedBefore = (await used()) ?? 0
    const create = await add({ name: 'setup' })
    expect(create.status, create.text).toBe(201)
    const script = create.body['init_script']
    expect(script).toMatchObject({ name: 'setup', content: SCRIPT, updated_at: script.created_at })
    const read = await ada.send('GET', `/v1/init-scripts/${script.id}`)
    expect([read.status, read.body, read.headers['etag']]).toEqual([200, { init_script: script }, '"1"'])

    const update = await ada.send('PATCH', `/v1/init-scripts/${script.id}`, { body: { name: 'renamed' } })
    expect(update.body['init_script']).toMatchObject({
      id: script.id,
      name: 'renamed',
      content: SCRIPT,
      created_at: script.created_at,
    })
    const rewrite = await ada.send('PATCH', `/v1/init-scripts/${script.id}`, { body: { content: '#cloud-config\n{}' } })
    expect(rewrite.body['init_script']).toMatchObject({ name: 'renamed', content: '#cloud-config\n{}' })
    expect(await used()).toBe(usedBefore + 1)

    const remove = await ada.send('DELETE', `/v1/init-scripts/${script.id}`)
    expect(remove.status).toBe(204)
    expect((await ada.send('GET', `/v1/init-scripts/${script.id}`)).status).toBe(404)
    expect(await used()).toBe(usedBefore)

    const entries = (await Promise.all([create, update, rewrite, remove].map((reply) => cloud.auditOf(reply)))).flat()
    expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'init_script.create success',
      'init_script.update success',
      'init_script.update success',
      'init_script.delete success',
    ])
    expect(entries[1]).toMatchObject({ changes: [{ field: 'name', before: 'setup', after: 'renamed' }] })
    expect(JSON.stringify(entries)).not.toMatch(/grüße|cloud-config/)
  })

  test.each([
    ['no name', { name: '' }, 'name'],
    ['no content', { content: '' }, 'content'],
    ['a NUL character', { content: 'a\u0000b' }, 'content'],
    ['too many bytes, though not too many characters', { content: 'ü'.repeat(16_385) }, 'content'],
  ])('with %s is refused', async (_what, more, field) => {
    expect((await add(more)).body).toMatchObject({ status: 400, errors: [{ field }] })
  })

  test('may have 32 KiB', async () => expect((await add({ content: 'ü'.repeat(16_384) })).status).toBe(201))

  test('has a unique name: 409 name_taken at creation and when renamed, and one of many at once', async () => {
    const first = await added({ name: 'mine' })
    const taken = await add({ name: 'mine' })
    expect(taken.body).toMatchObject({
      status: 409,
      reason: 'name_taken',
      resource: { type: 'init_script', id: first.id },
    })
    expect(await cloud.auditOf(taken)).toMatchObject([{ action: 'init_script.create', outcome: 'failed' }])
    const other = await added()
    expect((await ada.send('PATCH', `/v1/init-scripts/${other.id}`, { body: { name: 'mine' } })).body).toMatchObject({
      status: 409,
      reason: 'name_taken',
    })
    expect((await ada.send('PATCH', `/v1/init-scripts/${first.id}`, { body: { name: 'mine' } })).status).toBe(200)
    expect((await add({ name: 'mine' }, bob)).status).toBe(201)
    const racers = await Promise.all([
      add({ name: 'raced' }),
      ada.send('PATCH', `/v1/init-scripts/${other.id}`, { body: { name: 'raced' } }),
      add({ name: 'raced' }),
    ])
    expect(racers.map(({ status }) => status).filter((status) => status < 300)).toHaveLength(1)
    expect(racers.map(({ status }) => status).filter((status) => status === 409)).toHaveLength(2)
  })

  test('changes only in the version that If-Match names', async () => {
    const { id } = await added()
    const change = (name: string) =>
      ada.send('PATCH', `/v1/init-scripts/${id}`, { body: { name }, headers: { 'if-match': '"1"' } })
    expect([(await change('one')).status, (await change('two')).status]).toEqual([200, 409])
  })

  test('is one too many above the limit of the account', async () => {
    const limit = (value: number) => setQuotas(cloud.db, value, { accountId: ada.accountId, name: 'init_scripts' })
    await limit((await used()) ?? 0)
    expect((await add()).body).toMatchObject({ status: 422, reason: 'quota_exceeded', quota: { name: 'init_scripts' } })
    await limit(100)
  })

  test('is listed newest first, page by page', async () => {
    const all = (await ada.send('GET', '/v1/init-scripts')).body['items'].map(
      (script: { id: string }) => script.id,
    ) as string[]
    const first = (await ada.send('GET', '/v1/init-scripts?limit=2')).body
    const rest = (await ada.send('GET', `/v1/init-scripts?cursor=${first['next_cursor']}`)).body
    expect([...first['items'], ...rest['items']].map((script: { id: string }) => script.id)).toEqual(all)
    expect((await bob.send('GET', `/v1/init-scripts?cursor=${first['next_cursor']}`)).status).toBe(400)
  })
})

describe('a server made with an init script', () => {
  const create = (more: object) =>
    ada.send('POST', '/v1/servers', {
      body: {
        zone: cloud.zone,
        hostname: `web-${(made += 1)}`,
        plan: 'tiny',
        template: 'tiny-linux',
        ssh_keys: [PUBLIC_KEY],
        ...more,
      },
    })
  const keyOf = (name: string) => ({ namespace: accountNamespace(ada.accountId), name })

  test('keeps the text that the script had then, and says which one it was', async () => {
    const script = await added()
    const reply = await create({ init_script_id: script.id })
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body['server'].init_script_id).toBe(script.id)
    await ada.send('PATCH', `/v1/init-scripts/${script.id}`, { body: { content: 'other' } })
    await ada.send('DELETE', `/v1/init-scripts/${script.id}`)
    const server = await cloud.admin.get(Server, keyOf(reply.body['server'].id))
    expect(JSON.stringify(server)).not.toContain('echo')
    const secret = (await cloud.admin.get(Secret, keyOf(server?.spec.userDataSecretName ?? ''))) as unknown as {
      readonly data: { readonly userData: string }
    }
    expect(Buffer.from(secret.data.userData, 'base64').toString()).toBe(SCRIPT)
    expect((await ada.send('GET', `/v1/servers/${reply.body['server'].id}`)).body['server'].init_script_id).toBe(
      script.id,
    )
  })

  test('is refused with user data besides, and with the script of another account', async () => {
    const [mine, theirs] = [await added(), (await add({}, bob)).body['init_script']]
    for (const more of [
      { init_script_id: mine.id, user_data: 'x' },
      { init_script_id: theirs.id },
      { init_script_id: 'nobody' },
    ]) {
      expect((await create(more)).body, JSON.stringify(more)).toMatchObject({
        status: 400,
        errors: [{ field: 'init_script_id' }],
      })
    }
    expect((await create({ init_script_id: null })).body['server'].init_script_id).toBeNull()
  })
})
