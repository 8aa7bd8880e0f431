/** The engine alone, as it is started: what must hold of it, because nothing before it makes up for it. */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  engineCommand,
  engineEnvironment,
  openEngine,
  REGION,
  s3Socket,
} from '../../../embedded/object-storage/engine.ts'
import { findEngine } from '../../../embedded/object-storage/program.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { newTenantKeys } from '../../../kit/object-storage/keys.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { environment } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const CONNECTIONS = 8
const ROUNDS = 100

test('users whose requests take turns on its connections are all known by their own secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-engine-'))
  const folders = {
    ...{ data: join(folder, 'data'), versions: join(folder, 'versions'), users: join(folder, 'users') },
    sockets: folder,
  }
  for (const part of [folders.data, folders.versions, folders.users]) await mkdir(part)
  const { bucketPrefix: _, ...root } = newTenantKeys(systemRandom)
  const [program = '', ...words] = engineCommand((await findEngine()) ?? 'versitygw', folders)
  const child = spawn(program, words, { env: { ...environment(), ...engineEnvironment(root) }, stdio: 'ignore' })
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  onTestFinished(async () => {
    agent.destroy()
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true })
  })
  const engine = openEngine(folders, root, systemClock)
  await engine.whenUp()
  const users = Array.from({ length: 3 }, () => newTenantKeys(systemRandom))
  for (const { bucketPrefix, ...key } of users) {
    await engine.ensureUser(key.accessKeyId, key.secretAccessKey)
    await engine.ensureBucket(key, `${bucketPrefix}a`)
  }
  const look = async (turn: number): Promise<number> => {
    const { bucketPrefix, ...key } = users[turn % users.length] ?? newTenantKeys(systemRandom)
    const url = new URL(`/${bucketPrefix}a?list-type=2`, 'http://localhost')
    const signed = signRequest({ method: 'GET', url, body: Buffer.of() }, { ...key, region: REGION }, new Date())
    const path = `${url.pathname}${url.search}`
    const sent = request({ socketPath: s3Socket(folders), agent, path, headers: { ...signed, host: 'localhost' } })
    return new Promise((resolve, reject) => {
      sent.once('error', reject).once('response', (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
      })
      sent.end()
    })
  }
  const statuses: number[] = []
  const client = async (first: number) => {
    for (let turn = first; turn < first + ROUNDS; turn++) statuses.push(await look(turn))
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_none, first) => client(first)))
  expect(new Set(statuses)).toEqual(new Set([200]))
})
