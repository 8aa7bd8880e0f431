/** A second replica whose cache has stopped following: what a client wrote through the first one it shows all the same.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../apiserver/app.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { silentLog as log } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from './cloud.ts'
import { documented } from '../contract/document-check.ts'

const database = useDatabase()
const stop = new AbortController()
let cloud: Cloud
let ada: Person
let list: () => Promise<{ readonly id: string; readonly title: string; readonly state: string }[]>

beforeAll(async () => {
  cloud = await openCloud(database.db, { hasPeers: true })
  ada = await cloud.signUp('ada@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  const token = await ada.token('read_write')

  const deaf: Store = {
    ...cloud.admin,
    watch: async function* (_type, { signal }) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
  }
  const metrics = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store: deaf, clock, random, log, registry: metrics })
  const peer = await createApp({
    store: deaf,
    caches,
    db: database.db,
    clock,
    random,
    log,
    metrics,
    publicUrl: 'http://127.0.0.1:8080',
    canSendMail: true,
    checkAnswers: true,
    hasPeers: true,
    agents: {
      async *follow() {
        throw new Error('there are no hosts here')
      },
      write: async () => 'unreachable',
    },
  })
  caches.start(stop.signal)
  await caches.ready()
  list = async () => {
    const { status, body } = await documented(
      'customer',
      peer.customers,
    )({
      method: 'GET',
      target: '/v1/servers',
      remoteAddress: '192.0.2.7',
      signal: stop.signal,
      headers: { authorization: `Bearer ${token}` },
    })
    expect(status).toBe(200)
    return (
      JSON.parse(body instanceof Uint8Array ? Buffer.from(body).toString() : String(body)) as {
        items: Awaited<ReturnType<typeof list>>
      }
    ).items
  }
})
afterAll(async () => {
  stop.abort()
  await cloud?.close()
})

test('a client lists at one replica what it wrote at another', async () => {
  expect(await list()).toEqual([])
  const make = async (hostname: string) =>
    String(
      (
        await ada.send('POST', '/v1/servers', {
          body: { zone: cloud.zone, hostname, plan: 'tiny', template: 'tiny-linux' },
        })
      ).body['server'].id,
    )
  const [first, second] = [await make('first'), await make('second')]
  expect((await list()).map(({ id }) => id).sort()).toEqual([first, second].sort())
  expect((await ada.send('PATCH', `/v1/servers/${first}`, { body: { title: 'New' } })).status).toBe(200)
  expect((await list()).find(({ id }) => id === first)).toMatchObject({ title: 'New' })
})
