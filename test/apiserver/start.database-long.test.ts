/** The process of the API server on the embedded Kubernetes API: it serves customers once the webhook is registered. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { crds } from '../../controllers/kit/crds.ts'
import { probePort } from '../../embedded/kit/ports.ts'
import { ADMIN } from '../../embedded/kubernetes/core/core.ts'
import { type EmbeddedServer, startKubernetesApi } from '../../embedded/kubernetes/server/serve.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds } from '../../kit/kube/crd.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { silentLog as log } from '../../kit/sys/log.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { useDatabase } from '../database.ts'

const HOST = '127.0.0.1'
const MAIN = join(import.meta.dirname, '../../apiserver/main.ts')
const PATIENCE_MILLISECONDS = 120_000
const database = useDatabase()
const written: string[] = []
let folder: string
let kubernetes: EmbeddedServer
let child: ChildProcess | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-start-'))
  kubernetes = await startKubernetesApi({ folder: join(folder, 'kubernetes'), host: HOST, port: 0, clock, random, log })
  const transport = (call: Parameters<typeof kubernetes.core.handle>[0]) => kubernetes.core.handle(call, ADMIN)
  await installCrds(openClient({ transport, fieldManager: 'tests', clock, random }), crds(), clock)
  await writeFile(join(folder, 'token'), 'the-token-of-the-kubernetes-api')
})
afterAll(async () => {
  if (child !== undefined && child.exitCode === null) {
    const ended = new Promise((resolve) => child?.once('exit', resolve))
    child.kill('SIGTERM')
    await ended
  }
  await kubernetes?.stop()
  await rm(folder, { recursive: true, force: true })
})

interface Ready {
  readonly metrics_url: string
}

/** Holds the registration until `release`; `arrives` resolves when it is requested. */
function holdRegistration() {
  const { handle } = kubernetes.core
  const [arrival, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held: typeof handle = async (request, user) => {
    if (request.method === 'PATCH' && request.path.includes('/validatingwebhookconfigurations/')) {
      arrival.resolve()
      await release.promise
    }
    return handle(request, user)
  }
  Object.assign(kubernetes.core, { handle: held })
  return { arrives: arrival.promise, release: release.resolve }
}

test(
  'customers are answered 503 until the webhook is registered',
  async () => {
    const registration = holdRegistration()
    const port = await probePort(HOST, 0)
    const started = (child = fork(MAIN, [], {
      execPath: nodeBinary(),
      execArgv: [],
      cwd: folder,
      env: {
        PATH: process.env['PATH'] ?? '',
        SVCCLOUD_SETTINGS: JSON.stringify({
          databaseUrl: database.url,
          kubeconfig: kubernetes.kubeconfig,
          host: HOST,
          port,
          operatorPort: 0,
          mailDirectory: join(folder, 'mail'),
          webhookPort: 0,
          webhookTokenFile: join(folder, 'token'),
          webhookRegister: true,
        }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    }))
    for (const stream of [started.stdout, started.stderr])
      stream?.on('data', (chunk: Buffer) => written.push(chunk.toString()))
    const ready = new Promise<Ready>((resolve, reject) => {
      started.on('message', (message) => resolve(message as Ready)) // as `run` in main.ts sends it
      started.once('exit', (code) => reject(new Error(`it ended with ${code}:\n${written.slice(-20).join('')}`)))
    })
    const plans = `http://${HOST}:${port}/v1/plans`
    await Promise.race([registration.arrives, ready])
    expect((await fetch(plans)).status).toBe(503)
    registration.release()
    const { metrics_url: metrics } = await ready
    expect((await fetch(plans)).status).not.toBe(503)
    const { users } = parse(await readFile(kubernetes.kubeconfig, 'utf8'))
    const headers = { authorization: `Bearer ${users[0].user.token}` }
    expect(await (await fetch(metrics, { headers })).text()).toContain('svccloud_webhook_served 1\n')
  },
  PATIENCE_MILLISECONDS,
)
