/** The server over HTTPS: what only a socket shows. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { startServer, type EmbeddedServer } from '../../../embedded/kubernetes/server/serve.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

let folder: string
let server: EmbeddedServer
const tokens = new Map<string, string>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-https-'))
  server = await startServer({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  tokens.set('admin', await tokenIn(server.kubeconfig))
  tokens.set('alice', await server.issue({ user: 'alice', groups: [] }, join(folder, 'alice')))
})
afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const tokenIn = async (kubeconfig: string): Promise<string> =>
  parse(await readFile(kubeconfig, 'utf8')).users[0].user.token

/** The head of the answer; nothing of its body is read. */
function open(path: string, user: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = user === undefined ? {} : { authorization: `Bearer ${tokens.get(user)}` }
    request(`${server.url}${path}`, { ca: server.authority, headers }, resolve).on('error', reject).end()
  })
}

async function get(
  path: string,
  user?: string,
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const response = await open(path, user)
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode, text }
}

test.each(['watch=true', '%77atch=true', 'watch=%31', '%77%61%74%63%68=1'])(
  'a watch is a stream however its query is written: %s',
  async (query) => {
    const response = await open(`/api/v1/namespaces?${query}`, 'admin')
    const [first] = await response.setEncoding('utf8').take(1).toArray()
    expect(response.statusCode).toBe(200)
    expect(first).toMatch(/^{"type":"ADDED"/)
    response.destroy()
  },
)

test('a watch is counted as one however its query is written', async () => {
  const response = await open('/api/v1/services?%77atch=true', 'admin')
  response.destroy()
  await expect
    .poll(async () => (await get('/metrics', 'admin')).text)
    .toMatch(/apiserver_request_total{verb="WATCH",resource="services",code="200"} 1/)
})

test('a watch whose client stops reading ends after a while, and gives its slot back', async () => {
  const own = await mkdtemp(join(tmpdir(), 'svccloud-https-'))
  // what comes later comes a hundred times sooner
  const clock = { ...systemClock, after: (late: number, work: () => void) => systemClock.after(late / 100, work) }
  const hurried = await startServer({
    folder: own,
    host: '127.0.0.1',
    port: 0,
    clock,
    random: systemRandom,
    log: silentLog,
  })
  try {
    const { watches, store } = hurried.core.engine
    const headers = { authorization: `Bearer ${await tokenIn(hurried.kubeconfig)}` }
    const path = '/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=86400'
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(`${hurried.url}${path}`, { ca: hurried.authority, headers }, resolve).on('error', reject).end()
    })
    response.on('error', () => {}) // its head was read, its body never is
    expect(watches.count()).toBe(1)
    const metadata = { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '', creationTimestamp: '' }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text: 'x'.repeat(500_000) } }
    for (let count = 0; count < 60; count += 1) store.put('/configmaps', 'default/a', object)
    await expect.poll(() => watches.count(), { timeout: 10_000 }).toBe(0)
  } finally {
    await hurried.stop()
    await rm(own, { recursive: true, force: true })
  }
})

test('metrics are for users who may get their path', async () => {
  expect((await get('/metrics')).status).toBe(401)
  const refused = await get('/metrics', 'alice')
  expect([refused.status, JSON.parse(refused.text).message]).toEqual([
    403,
    'forbidden: User "alice" cannot get path "/metrics"',
  ])
  expect((await get('/metrics', 'admin')).status).toBe(200)
})
