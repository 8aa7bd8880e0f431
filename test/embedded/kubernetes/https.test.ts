/** The server over HTTPS: what only a socket shows. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ADMIN } from '../../../embedded/kubernetes/core/core.ts'
import { startKubernetesApi, type EmbeddedServer } from '../../../embedded/kubernetes/server/serve.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

let folder: string
let server: EmbeddedServer
const tokens = new Map<string, string>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-https-'))
  server = await startKubernetesApi({
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

/** A server for which what comes later comes a hundred times sooner, and a way to ask it as its administrator. */
async function withHurriedServer(
  work: (
    hurried: EmbeddedServer,
    begin: (path: string, token?: string) => Promise<IncomingMessage>,
    own: string,
    pace: { hurry: number },
  ) => Promise<void>,
): Promise<void> {
  const own = await mkdtemp(join(tmpdir(), 'svccloud-https-'))
  const pace = { hurry: 100 }
  const clock = { ...systemClock, after: (late: number, run: () => void) => systemClock.after(late / pace.hurry, run) }
  const options = { folder: own, host: '127.0.0.1', port: 0, clock, random: systemRandom, log: silentLog }
  const hurried = await startKubernetesApi(options)
  const admin = await tokenIn(hurried.kubeconfig)
  const begin = async (path: string, token = admin) => {
    const headers = { authorization: `Bearer ${token}` }
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(`${hurried.url}${path}`, { ca: hurried.authority, headers }, resolve).on('error', reject).end()
    })
    return response.on('error', () => {})
  }
  try {
    await work(hurried, begin, own, pace)
  } finally {
    await hurried.stop()
    await rm(own, { recursive: true, force: true })
  }
}
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const largeObject = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '', creationTimestamp: '' },
  data: { text: 'x'.repeat(500_000) },
})

test('a watch whose client stops reading ends after a while, and gives its slot back', () =>
  withHurriedServer(async ({ core: { engine } }, begin) => {
    const { watches, store } = engine
    await begin(`${CONFIG_MAPS}?watch=1&timeoutSeconds=86400`) // its head is read, its body never is
    expect(watches.count()).toBe(1)
    for (let count = 0; count < 60; count += 1) store.put('/configmaps', 'default/a', largeObject('a'))
    await expect.poll(() => watches.count()).toBe(0)
  }))

test('a list whose client stops reading ends after a while, and one that is read slowly does not', () =>
  withHurriedServer(async ({ core: { engine } }, begin, _own, pace) => {
    for (let count = 0; count < 60; count += 1)
      engine.store.put('/configmaps', `default/c${count}`, largeObject(`c${count}`))
    const answered = async () => {
      let text = ''
      for await (const chunk of (await begin('/metrics')).setEncoding('utf8')) text += chunk
      return Number(/apiserver_request_total{verb="GET",resource="configmaps",code="200"} (\d+)/.exec(text)?.[1] ?? 0)
    }
    await begin(CONFIG_MAPS) // its head is read, its body never is
    await expect.poll(answered).toBe(1)

    // The whole takes longer than one piece may; a piece takes a fifteenth of that: no busy machine is late.
    pace.hurry = 20
    let bytes = 0
    for await (const chunk of (await begin(CONFIG_MAPS)) as AsyncIterable<Buffer>) {
      if (Math.floor(bytes / 1_000_000) < Math.floor((bytes + chunk.length) / 1_000_000))
        await new Promise((resolve) => setTimeout(resolve, 100))
      bytes += chunk.length
    }
    expect(bytes).toBeGreaterThan(60 * 500_000)
  }))

test('a watch ends soon after its user has lost the right to it, or the token', () =>
  withHurriedServer(async ({ core, issue }, begin, own) => {
    const file = join(folder, 'watcher')
    const token = await issue({ user: 'alice', groups: [] }, file)
    const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'
    const ask = (method: 'POST' | 'DELETE', path: string, body?: object) => {
      const headers = { 'content-type': 'application/json' }
      return core.handle({ method, path, headers, ...(body ? { body: JSON.stringify(body) } : {}) }, ADMIN)
    }
    const grant = () =>
      ask('POST', bindings, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'watching' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'User', name: 'alice' }],
      })
    const watch = async () => {
      const response = await begin(`${CONFIG_MAPS}?watch=1&timeoutSeconds=86400`, token)
      response.resume()
      return [response.statusCode, core.engine.watches.count()]
    }
    const ended = () => expect.poll(() => core.engine.watches.count()).toBe(0)

    await grant()
    expect(await watch()).toEqual([200, 1])
    await new Promise((resolve) => setTimeout(resolve, 1_000)) // several looks later
    expect(core.engine.watches.count()).toBe(1)
    await ask('DELETE', `${bindings}/watching`)
    await ended()

    await grant()
    expect(await watch()).toEqual([200, 1])
    const tokens = join(own, 'tokens.json')
    const all = JSON.parse(await readFile(tokens, 'utf8')) as { readonly user: string }[] // as the server writes it
    await writeFile(tokens, JSON.stringify(all.filter(({ user }) => user !== 'alice')))
    await ended()
    expect(await watch()).toEqual([401, 0])
  }))

test('metrics are for users who may get their path', async () => {
  expect((await get('/metrics')).status).toBe(401)
  const refused = await get('/metrics', 'alice')
  expect([refused.status, JSON.parse(refused.text).message]).toEqual([
    403,
    'forbidden: User "alice" cannot get path "/metrics"',
  ])
  expect((await get('/metrics', 'admin')).status).toBe(200)
})
