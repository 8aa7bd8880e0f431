import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { prepareControlPlanes } from '../../../hosting/processes/settings.ts'
import { openControlPlanes } from '../../../integrations/control-planes/configuration.ts'
import type { ControlPlanes } from '../../../integrations/control-planes/control.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { environment, signalProcess } from '../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { SETTINGS_VARIABLE } from '../../../kit/sys/settings.ts'
import { until } from '../../eventually.ts'
import { isWhole, kubeClient, newDesired } from './hosted.ts'

const MAIN = join(import.meta.dirname, '../../../hosting/processes/main.ts')
let folder: string
let child: ChildProcess
let control: ControlPlanes
let controlUrl: string

async function start(): Promise<void> {
  const choice = { folder, host: '127.0.0.1', regions: ['eu-1'], random: systemRandom, apiUrl: 'http://127.0.0.1:9' }
  const { process, platform } = await prepareControlPlanes(choice)
  child = fork(MAIN, [], {
    env: { ...environment(), [SETTINGS_VARIABLE]: JSON.stringify(process) },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  await new Promise((resolve) => child.once('message', resolve))
  const offer = await openControlPlanes(platform, systemClock)
  if ('obstacle' in offer) throw new Error(offer.obstacle)
  controlUrl = platform.controlPlanesUrl ?? ''
  control = offer.control
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-planes-'))
  await start()
})
afterAll(async () => {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
  await rm(folder, { recursive: true, force: true })
})

/** Of programs with the folder in their command. */
async function programsOf(folderName: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return pids.filter((_, index) => commands[index]?.includes(folderName) === true)
}

const untilWhole = async (id: string) => {
  const isThere = (state: Awaited<ReturnType<ControlPlanes['get']>>) => state !== undefined && isWhole(state)
  const state = await until('it to be whole', () => control.get(id), isThere)
  if (state === undefined) throw new Error('there is no state')
  return state
}

test('a host that is killed takes its programs along, and goes on with what was under way', async () => {
  const desired = newDesired()
  await control.ensure(desired)
  const state = await untilWhole(desired.id)
  const { token } = await control.userToken(desired.id, 'admin', 3_600)
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } }
  await kubeClient(state, token).send('POST', '/api/v1/namespaces/default/configmaps', map)
  const snapshotId = newUuid(systemRandom)
  await control.snapshot(desired.id, snapshotId)
  const second = newDesired()
  await control.ensure(second)
  child.kill('SIGKILL')
  await until(
    'the programs to be gone',
    () => programsOf(folder),
    (pids) => pids.length === 0,
  )
  await start()
  const again = await untilWhole(desired.id)
  expect(again.endpoint).toBe(state.endpoint)
  expect(again.certificateAuthority).toBe(state.certificateAuthority)
  const kept = await kubeClient(again, token).send('GET', '/api/v1/namespaces/default/configmaps/kept')
  expect(kept.status).toBe(200)
  await untilWhole(second.id)
  const snapshots = await until(
    'the snapshot',
    () => control.snapshots(desired.id),
    (found) => found[0]?.phase === 'done',
  )
  expect(snapshots.map(({ id }) => id)).toEqual([snapshotId])
  expect((await programsOf(folder)).every((pid) => signalProcess(pid, 0))).toBe(true)
})

test('the host answers nobody without the token, and nothing that it cannot read', async () => {
  const token = await readFile(join(folder, 'token'), 'utf8')
  const post = async (name: string, body: string, authorization = `Bearer ${token}`) =>
    (await fetch(`${controlUrl}/calls/${name}`, { method: 'POST', body, headers: { authorization } })).status
  expect(await post('offer', '[]')).toBe(200)
  expect(await post('offer', '[]', 'Bearer wrong')).toBe(401)
  expect(await post('get', '["../../etc"]')).toBe(400)
  expect(await post('get', 'no json')).toBe(400)
  expect(await post('constructor', '[]')).toBe(404)
  expect(await post('offer', `["${'x'.repeat(300_000)}"]`)).toBe(413)
  await expect(control.nodes(newUuid(systemRandom))).rejects.toThrow('the control plane is not available')
  await expect(control.ensure(newDesired({ release: '1.30.0' }))).rejects.toThrow('not offered')
})
