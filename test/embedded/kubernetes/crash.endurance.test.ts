/** The process is killed while many write: not one acknowledged write may be lost. */
import { fork, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { parse } from 'yaml'

const MAIN = join(import.meta.dirname, '../../../embedded/kubernetes/main.ts')
const WRITERS = 10
const ROUNDS = 50
const WRITES_PER_ROUND = 300
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'

interface Running {
  readonly child: ChildProcess
  readonly url: string
  readonly token: string
  readonly authority: string
}

const running = new Set<ChildProcess>()
const folders: string[] = []
afterEach(async () => {
  for (const child of running) child.kill('SIGKILL')
  running.clear()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

async function start(folder: string): Promise<Running> {
  const child = fork(MAIN, [], {
    env: { ...process.env, SVCCLOUD_DATA: folder, SVCCLOUD_PORT: '0', SVCCLOUD_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  running.add(child)
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: any) => resolve(message.url))
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
  })
  const config = parse(await readFile(join(folder, 'admin.kubeconfig'), 'utf8'))
  return {
    child,
    url,
    token: config.users[0].user.token,
    authority: Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64').toString(),
  }
}

async function kill({ child }: Running): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
  running.delete(child)
}

function call(server: Running, method: string, path: string, body?: object): Promise<{ status: number; body: any }> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${server.token}`,
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    }
    const sent = request(server.url + path, { method, ca: server.authority, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.once('error', reject)
      answer.once('end', () =>
        resolve({ status: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }),
      )
    })
    sent.once('error', reject)
    sent.end(text)
  })
}

/** By name: the last state of each writer's own object that the server has acknowledged. */
type Acknowledged = Map<string, { readonly count: string; readonly revision: number }>

/** Writes until the connection breaks; answers the last acknowledged state of the writer's own object. */
async function write(server: Running, name: string, acknowledged: Acknowledged, onWrite: () => void): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }
  for (let count = Number(acknowledged.get(name)?.count ?? 0) + 1; ; count++) {
    const data = { count: String(count) }
    const answer = await call(
      server,
      acknowledged.has(name) ? 'PUT' : 'POST',
      acknowledged.has(name) ? `${CONFIG_MAPS}/${name}` : CONFIG_MAPS,
      { ...object, data },
    )
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
    acknowledged.set(name, { count: String(count), revision: Number(answer.body.metadata.resourceVersion) })
    onWrite()
  }
}

test('no acknowledged write is lost when the process is killed under load, and revisions never go back', {
  timeout: 900_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-crash-'))
  folders.push(folder)
  const acknowledged: Acknowledged = new Map()
  for (let round = 0; round < ROUNDS; round++) {
    const server = await start(folder)
    const before = acknowledged.size === 0 ? 0 : Math.max(...[...acknowledged.values()].map(({ revision }) => revision))
    const list = await call(server, 'GET', CONFIG_MAPS)
    expect(Number(list.body.metadata.resourceVersion)).toBeGreaterThanOrEqual(before)
    const stored = new Map<string, any>(list.body.items.map((item: any) => [item.metadata.name, item]))
    for (const [name, { count, revision }] of acknowledged) {
      // A write that was stored but not yet acknowledged may be there, an acknowledged one must be.
      expect(Number(stored.get(name)?.data.count)).toBeGreaterThanOrEqual(Number(count))
      expect(Number(stored.get(name)?.metadata.resourceVersion)).toBeGreaterThanOrEqual(revision)
    }
    for (const [name, item] of stored)
      acknowledged.set(name, { count: item.data.count, revision: Number(item.metadata.resourceVersion) })
    let left = WRITES_PER_ROUND
    const isEnough = Promise.withResolvers<void>()
    const onWrite = () => {
      if (--left === 0) isEnough.resolve()
    }
    const writers = Array.from({ length: WRITERS }, (_, index) =>
      write(server, `writer-${index}`, acknowledged, onWrite).catch(() => undefined),
    )
    await isEnough.promise
    await kill(server)
    await Promise.all(writers)
  }
})
