/** The embedded Kubernetes API is killed while kubectl watches and waits. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, it } from 'vitest'
import { nodeBinary } from '../../../kit/sys/process.ts'
import { tryRestart } from '../../cluster/restart.ts'

const MAIN = join(import.meta.dirname, '../../../embedded/kubernetes/main.ts')
let folder: string
let child: ChildProcess
let port = 0

/** At the same port each time, as clients expect. */
async function start(): Promise<void> {
  child = fork(MAIN, [], {
    execPath: nodeBinary(),
    execArgv: [],
    env: { ...process.env, SVCCLOUD_DATA: folder, SVCCLOUD_PORT: String(port), SVCCLOUD_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve((message as { port: number }).port)) // its only message
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
  })
}

async function kill(): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-restart-'))
  await start()
})
afterAll(async () => {
  await kill()
  await rm(folder, { recursive: true, force: true })
})

it(
  'a watch ends, a wait continues, nothing that was written is lost',
  () =>
    tryRestart(join(folder, 'admin.kubeconfig'), async () => {
      await kill()
      await start()
    }),
  120_000,
)
