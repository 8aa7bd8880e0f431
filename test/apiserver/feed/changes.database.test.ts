/** The stream of changes through the API, with a real database and the embedded Kubernetes API. */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { KINDS } from '../../../apiserver/nouns.ts'
import { CHANGE_TYPES } from '../../../resources/change/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud, PASSWORD, type Person, PUBLIC_KEY } from '../cloud.ts'
import { makeSamples } from '../samples.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let eve: Person
let token = ''

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  eve = await cloud.signUp('eve@example.com')
  token = await ada.token('read')
})
afterAll(() => cloud.close())

interface Got {
  readonly event: string
  readonly data: Record<string, any> // of any event
}

/** Opens a stream and reads it. */
async function connect(authorization: string, query = '', headers: Readonly<Record<string, string>> = {}) {
  const stop = new AbortController()
  const response = await cloud.app.customers({
    method: 'GET',
    target: `/v1/changes${query}`,
    headers: { ...(authorization === '' ? {} : { authorization: `Bearer ${authorization}` }), ...headers },
    remoteAddress: '192.0.2.9',
    signal: stop.signal,
  })
  const got: Got[] = []
  let cursor = ''
  let hasEnded = false
  const reading = async () => {
    for await (const chunk of response.body as AsyncIterable<string>) {
      for (const [, event = '', data = ''] of chunk.matchAll(/^event: (\w+)\ndata: (.*)$/gm))
        got.push({ event, data: JSON.parse(data) as Got['data'] })
      cursor = [...chunk.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? cursor
    }
    hasEnded = true
  }
  if (response.status === 200) void reading()
  return {
    response,
    got,
    cursor: () => cursor,
    hasEnded: () => hasEnded,
    close: () => stop.abort(),
    /** Waits for a change of the item. */
    change: (type: string, id: string, is = 'set') =>
      expect
        .poll(() => got.find(({ data }) => data['type'] === type && data['id'] === id && data['is'] === is))
        .toBeDefined(),
    newest: (type: string, id: string) =>
      got.findLast(({ data }) => data['type'] === type && data['id'] === id)?.data['item'],
  }
}
/** Until the test ends. */
async function follow(...given: Parameters<typeof connect>) {
  const stream = await connect(...given)
  onTestFinished(stream.close)
  return stream
}
/** Of a new session. */
async function cookieOf({ email }: Person): Promise<string> {
  const signedIn = await cloud.send('POST', '/v1/auth/login', { body: { email, password: PASSWORD } })
  return [signedIn.headers['set-cookie'] ?? []]
    .flat()
    .map((set) => set.split(';')[0])
    .join('; ')
}
const POOL = {
  zone: 'eu-1-a',
  name: 'workers',
  plan: 'tiny',
  count: 1,
  version: '1.36',
  labels: {},
  taints: [],
  publicIpv4: false,
  maxUnavailable: 1,
}
const STORAGE = { zone: 'eu-1-a', title: 'Data', sizeGibibytes: 1 }
const network = async (person: Person, name: string) =>
  (await person.send('POST', '/v1/networks', { body: { zone: cloud.zone, name } })).body['network'].id as string

const LISTS: Readonly<Record<string, string>> = { object_storage: '/v1/object-storage' }
const listOf = (type: string): string => LISTS[type] ?? `/v1/${type.replaceAll('_', '-')}s`

describe('a sample of every type', () => {
  let own: Awaited<ReturnType<typeof connect>>
  let foreign: typeof own
  let owner: Person
  let ids: Readonly<Record<string, string>>
  beforeAll(async () => {
    owner = await cloud.signUp('owner@example.com')
    own = await connect(await owner.token('read'))
    foreign = await connect(token)
    ids = await makeSamples({ cloud, owner })
    const metadata = { namespace: accountNamespace(owner.accountId), name: 'pool' }
    const clusterId = ids['kubernetes-clusters'] ?? ''
    await cloud.admin.create(NodePool, { metadata, spec: { ...POOL, clusterId } })
  })
  afterAll(() => {
    own.close()
    foreign.close()
  })

  test.each(CHANGE_TYPES)('%s: the stream has what the list answers', async (type) => {
    const listed = async (): Promise<Record<string, unknown>[]> => {
      if (type === 'node_pool') {
        const cluster = await owner.send('GET', `/v1/kubernetes-clusters/${ids['kubernetes-clusters']}`)
        return cluster.body['kubernetes_cluster'].node_pools
      }
      return (await owner.send('GET', listOf(type))).body['items']
    }
    await expect
      .poll(
        async () => {
          const items = await listed()
          const newest = items.map(({ id }) => own.newest(type, String(id)))
          return items.length > 0 && isDeepStrictEqual(newest, items) ? 'the same' : { items, newest }
        },
        { interval: 200 },
      )
      .toBe('the same')
  })

  test('another account has none of them', async () => {
    await foreign.change('network', await network(ada, 'later'))
    const text = JSON.stringify(foreign.got)
    expect(own.got.filter(({ data }) => data['id'] !== undefined && text.includes(String(data['id'])))).toEqual([])
    expect(own.got.length).toBeGreaterThan(CHANGE_TYPES.length)
  })
})

describe('a stream', () => {
  test('sends what its list answers, for objects and for rows, and each deletion', async () => {
    const stream = await follow(token)
    await expect.poll(() => stream.got).toEqual([{ event: 'reset', data: { reason: 'start' } }])
    const id = await network(ada, 'inner')
    await stream.change('network', id)
    const listed = async (path: string, wanted: string) =>
      (await ada.send('GET', path)).body['items'].find((item: { id: string }) => item.id === wanted)
    await expect.poll(async () => stream.newest('network', id)).toEqual(await listed('/v1/networks', id))

    const key = (await ada.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })).body[
      'ssh_key'
    ]
    await stream.change('ssh_key', key.id)
    expect(stream.newest('ssh_key', key.id)).toEqual(await listed('/v1/ssh-keys', key.id))
    await ada.send('DELETE', `/v1/ssh-keys/${key.id}`)
    await stream.change('ssh_key', key.id, 'removed')

    const metadata = { namespace: accountNamespace(ada.accountId), name: id }
    await cloud.admin.patch(Network, metadata, { metadata: { finalizers: [] } })
    await cloud.admin.delete(Network, metadata)
    await stream.change('network', id, 'removed')
  })

  test('has nothing of another account, whoever asks for it', async () => {
    const mine = await follow(token)
    const hers = await follow(await eve.token('read'))
    const foreign = await network(eve, 'hers')
    await eve.send('POST', '/v1/init-scripts', { body: { name: 'hers', content: '#!/bin/sh\n' } })
    await hers.change('network', foreign)
    await expect.poll(() => hers.got.some(({ data }) => data['type'] === 'init_script')).toBe(true)
    // later changes have come, so those before would have
    const own = await network(ada, 'mine')
    await ada.send('POST', '/v1/init-scripts', { body: { name: 'mine', content: '#!/bin/sh\n' } })
    await mine.change('network', own)
    await expect.poll(() => mine.got.some(({ data }) => data['type'] === 'init_script')).toBe(true)
    expect(JSON.stringify(mine.got)).not.toContain('hers')
    expect(JSON.stringify(mine.got)).not.toContain(foreign)
    expect(JSON.stringify(hers.got)).not.toContain(own)
    // her cursor does not work here
    const other = await follow(token, `?cursor=${hers.cursor()}`)
    await expect.poll(() => other.got).toEqual([{ event: 'reset', data: { reason: 'cursor_unknown' } }])
  })

  test('never shows machines of managed services, also not when they are deleted', async () => {
    const stream = await follow(token)
    for (const name of ['machine-hidden', 'plain']) {
      const metadata = { namespace: accountNamespace(ada.accountId), name }
      await cloud.admin.create(Storage, { metadata, spec: STORAGE })
      await cloud.admin.patch(Storage, metadata, { spec: { title: 'changed' } })
      await cloud.admin.delete(Storage, metadata)
    }
    await stream.change('storage', 'plain', 'removed')
    expect(JSON.stringify(stream.got)).not.toContain('machine-')
  })

  test('continues from its cursor, by query and as browsers do', async () => {
    // Cursors from the first moments of a process are not good for long.
    const versions = () =>
      KINDS.flatMap(({ resource }) => Number(cloud.caches.known(resource)?.syncedVersion ?? Number.POSITIVE_INFINITY))
    const begun = Math.max(...versions().filter(Number.isFinite))
    await expect.poll(() => Math.min(...versions())).toBeGreaterThanOrEqual(begun)
    const first = await follow(token)
    const old = await network(ada, 'old')
    await first.change('network', old)
    first.close()
    const missed = await network(ada, 'missed')
    const script = (await ada.send('POST', '/v1/init-scripts', { body: { name: 'missed', content: '#!/bin/sh\n' } }))
      .body['init_script'].id
    for (const stream of [
      await follow(token, `?cursor=${first.cursor()}`),
      await follow(token, '', { 'last-event-id': first.cursor() }),
      // The address of a browser's stream stays as it was.
      await follow(token, '?cursor=old', { 'last-event-id': first.cursor() }),
    ]) {
      await stream.change('network', missed)
      await stream.change('init_script', script)
      expect(stream.got.filter(({ event }) => event === 'reset')).toEqual([])
    }
  })

  test('sends only the types that were asked for', async () => {
    const stream = await follow(token, '?type=ssh_key&type=network')
    await ada.send('POST', '/v1/init-scripts', { body: { name: 'unseen', content: '#!/bin/sh\n' } })
    const seen = await ada.send('POST', '/v1/ssh-keys', { body: { name: 'seen', public_key: PUBLIC_KEY } })
    await stream.change('ssh_key', seen.body['ssh_key'].id)
    expect(stream.got.filter(({ data }) => data['type'] === 'init_script')).toEqual([])
    expect((await follow(token, '?type=nothing')).response.status).toBe(400)
    // Its cursor knows nothing of other types.
    const all = await follow(token, `?cursor=${stream.cursor()}`)
    await expect.poll(() => all.got).toEqual([{ event: 'reset', data: { reason: 'cursor_unknown' } }])
  })

  test('is refused without the permission to read, and a fifth time', async () => {
    expect((await follow('svc_wrong')).response.status).toBe(401)
    expect((await follow(await ada.token(['billing.read']))).response.status).toBe(403)
    const once = await ada.token('read')
    const streams = [await follow(once), await follow(once), await follow(once), await follow(once)]
    expect((await follow(once)).response.status).toBe(429)
    streams[0]?.close()
    await expect.poll(async () => (await follow(once)).response.status).toBe(200)
  })

  test('ends for clients that lose the right to it or part of it, and continues for others', async () => {
    const names = ['promoted', 'demoted', 'removed', 'leaving', 'staying'] as const
    const people = await Promise.all(names.map((name) => cloud.join(ada.accountId, `${name}-watcher@example.com`)))
    const [promoted, demoted, removed, leaving, staying] = people as [Person, Person, Person, Person, Person] // as many
    const member = (person: Person) => `/v1/account/members/${person.userId}`
    const revoked = await ada.token('read')
    const tokens = (await ada.send('GET', '/v1/account/tokens')).body['items'] as { id: string }[]
    const streams = [
      await follow(await promoted.token('read')),
      await follow('', '', { cookie: await cookieOf(demoted) }),
      await follow(await removed.token('read')),
      await follow('', '', { cookie: await cookieOf(leaving) }),
      await follow(revoked),
      await follow(await staying.token('read')),
    ]
    expect(streams.map(({ response }) => response.status)).toEqual([200, 200, 200, 200, 200, 200])
    await ada.send('PATCH', member(promoted), { body: { role: 'admin' } })
    await ada.send('PATCH', member(demoted), { body: { role: 'viewer' } })
    await ada.send('DELETE', member(removed))
    await leaving.send('POST', '/v1/accounts/active', { body: { account_id: leaving.accountId } })
    await ada.send('DELETE', `/v1/account/tokens/${tokens[0]?.id}`)
    await expect.poll(() => streams.map(({ hasEnded }) => hasEnded())).toEqual([true, true, true, true, true, false])
    // the role is the same, and so is what the stream may send
    const id = await network(ada, 'after')
    await streams.at(-1)?.change('network', id)
  })
})

describe('read', () => {
  const read = async (person: Person, query = '') => (await person.send('GET', `/v1/changes/read?${query}`)).body
  const idsIn = ({ changes }: Record<string, any>) => changes.map(({ id }: { readonly id: string }) => id)

  test('answers what changed after the cursor, and nothing of another account', async () => {
    const first = await read(ada)
    expect(first).toEqual({ reset: 'start', changes: [], cursor: expect.any(String) })
    const [mine, hers] = [await network(ada, 'polled'), await network(eve, 'foreign')]
    const { cursor } = first
    await expect.poll(async () => idsIn(await read(ada, `cursor=${cursor}`))).toContain(mine)
    const all = await read(ada, `cursor=${cursor}`)
    expect(all['reset']).toBe(null)
    expect(idsIn(all)).toContain(mine)
    expect(idsIn(all)).not.toContain(hers)
    expect(all['changes'].find(({ id }: { readonly id: string }) => id === mine).item).toMatchObject({ name: 'polled' })
    expect(await read(ada, `cursor=${(await read(eve))['cursor']}`)).toMatchObject({ reset: 'cursor_unknown' })
  })

  test('waits for the first change', async () => {
    const { cursor } = await read(ada)
    const waiting = read(ada, `cursor=${cursor}&type=init_script&wait=30`)
    expect(await waiting).toMatchObject({ reset: 'cursor_unknown' })
    const { cursor: own } = await read(ada, 'type=init_script')
    const next = read(ada, `cursor=${own}&type=init_script&wait=30`)
    const script = (await ada.send('POST', '/v1/init-scripts', { body: { name: 'awaited', content: '#!/bin/sh\n' } }))
      .body['init_script'].id
    const { reset, changes } = (await next) as { reset: null; changes: { id: string; is: string }[] }
    expect(reset).toBe(null)
    expect(changes).toMatchObject([{ type: 'init_script', id: script, is: 'set', item: { name: 'awaited' } }])
    await ada.send('DELETE', `/v1/init-scripts/${script}`)
  })

  test('answers nothing to clients that lost the right to it while they waited', async () => {
    const [removed, leaving, staying] = await Promise.all([
      cloud.join(ada.accountId, 'removed-poller@example.com'),
      cloud.join(ada.accountId, 'leaving-poller@example.com'),
      cloud.join(ada.accountId, 'staying-poller@example.com'),
    ])
    const revoked = await ada.token('read')
    const tokens = (await ada.send('GET', '/v1/account/tokens')).body['items'] as { id: string }[]
    const { cursor } = await read(ada, 'type=init_script')
    const poll = (headers: Readonly<Record<string, string>>) =>
      cloud.app.customers({
        method: 'GET',
        target: `/v1/changes/read?type=init_script&cursor=${cursor}&wait=30`,
        headers,
        remoteAddress: '192.0.2.9',
        signal: new AbortController().signal,
      })
    const waiting = [
      poll({ authorization: `Bearer ${await removed.token('read')}` }),
      poll({ cookie: await cookieOf(leaving) }),
      poll({ authorization: `Bearer ${revoked}` }),
      poll({ authorization: `Bearer ${await staying.token('read')}` }),
    ]
    expect(await Promise.race([...waiting, new Promise((resolve) => setTimeout(resolve, 100, 'none'))])).toBe('none')
    await ada.send('DELETE', `/v1/account/members/${removed.userId}`)
    await leaving.send('POST', '/v1/accounts/active', { body: { account_id: leaving.accountId } })
    await ada.send('DELETE', `/v1/account/tokens/${tokens[0]?.id}`)
    const script = { name: 'after-the-wait', content: '#!/bin/sh\n' }
    const { id } = (await ada.send('POST', '/v1/init-scripts', { body: script })).body['init_script']
    const answers = await Promise.all(waiting)
    expect(answers.map(({ status }) => status)).toEqual([401, 403, 401, 200])
    expect(answers.map(({ body }) => String(body).includes(id))).toEqual([false, false, false, true])
  })
})
