/** A guest that counts on its console goes back and forth between two agents' processes, which are killed on the way, and so is what receives it.
 *  The test plays the controllers. Whatever happens, the count goes on by one: it never jumps back, forks or stands still for good. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedServer, startServer } from '../../../embedded/kubernetes/server/serve.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { installCrds, readCrds } from '../../../kit/kube/crd.ts'
import { type HttpsTransport, openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../kit/kube/kubeconfig.ts'
import { Namespace, Secret } from '../../../kit/kube/object.ts'
import type { Draft, Store } from '../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { environment, nodeBinary, signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { Instance, type InstanceStatus, NODE_REPORT_NAME, NodeReport, nodeNamespace, Volume, type VolumeSpec, type VolumeStatus } from '../../../resources/instance.ts'
import { instanceSpec } from './instance-spec.ts'
import { eventually, IMAGE_FOLDER, tinyLinux } from './real-host.ts'

const NODES = ['alpha', 'beta'] as const
type NodeName = (typeof NODES)[number]
const other = (node: NodeName): NodeName => (node === 'alpha' ? 'beta' : 'alpha')
const NAME = '3f0b8f1e-2a61-4f0e-9a3f-0b7c6f0d4e99'
const KEY_SECRET = 'move-key'
const ORDERS = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 60, isCancelled: false }

let folder: string
let server: EmbeddedServer
let https: HttpsTransport
let store: Store
const agents = new Map<NodeName, ChildProcess>()
let operations = 0

const key = (node: NodeName) => ({ namespace: nodeNamespace(node), name: NAME })
const volumeKey = (node: NodeName) => ({ namespace: nodeNamespace(node), name: 'boot' })
const guestFolder = (node: NodeName) => join(folder, node, 'guests', NAME)
const guestPid = async (node: NodeName) => Number(await readFile(join(guestFolder(node), 'qemu.pid'), 'utf8').catch(() => '0'))

beforeAll(async () => {
  await tinyLinux()
  folder = await mkdtemp(join(tmpdir(), 'svccloud-move-'))
  server = await startServer({ folder: join(folder, 'kubernetes'), host: '127.0.0.1', port: 0, clock, random, log: silentLog })
  https = openHttpsTransport(await readKubeconfig(server.kubeconfig, clock))
  store = openClient({ transport: https.transport, fieldManager: 'tests', clock, random })
  await installCrds(store, await readCrds(join(import.meta.dirname, '../../../crds')), clock)
  for (const node of NODES) {
    await store.create(Namespace, { metadata: { name: nodeNamespace(node) }, spec: {} })
    const data = { psk: Buffer.from('ab'.repeat(32)).toString('base64') }
    await store.create(Secret, { metadata: { namespace: nodeNamespace(node), name: KEY_SECRET }, data } as unknown as Draft<unknown, unknown>) // a Secret has data, no spec
    await startAgent(node)
  }
})

afterAll(async () => {
  for (const node of NODES) {
    await killAgent(node)
    const pid = await guestPid(node)
    if (pid > 0) signalProcess(pid, 'SIGKILL')
  }
  await https.close()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

async function startAgent(node: NodeName): Promise<void> {
  const child = fork(join(import.meta.dirname, '../../../agents/node/main.ts'), [], {
    execPath: nodeBinary(), execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: {
      PATH: environment()['PATH'], SVCCLOUD_NODE_NAME: node, SVCCLOUD_KUBECONFIG: server.kubeconfig, SVCCLOUD_DATA: join(folder, node),
      SVCCLOUD_HYPERVISOR: 'qemu', SVCCLOUD_IMAGE_CACHE: IMAGE_FOLDER, SVCCLOUD_SHARED_VOLUMES: join(folder, 'shared'),
    },
  })
  agents.set(node, child)
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}`)))
  })
}

async function killAgent(node: NodeName): Promise<void> {
  const child = agents.get(node)
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
}

const statusWhen = (what: string, node: NodeName, isWanted: (status: InstanceStatus) => boolean): Promise<InstanceStatus> =>
  eventually(`${what} on ${node}`, async () => {
    const status = (await store.get(Instance, key(node)))?.status
    return status !== undefined && isWanted(status) ? status : undefined
  })
const volumeWhen = (what: string, node: NodeName, isWanted: (status: VolumeStatus) => boolean): Promise<VolumeStatus> =>
  eventually(`${what} on ${node}`, async () => {
    const status = (await store.get(Volume, volumeKey(node)))?.status
    return status !== undefined && isWanted(status) ? status : undefined
  })
const consoleOf = (node: NodeName): Promise<string> => readFile(join(guestFolder(node), 'console.log'), 'utf8').catch(() => '')
const storage = { namespace: 'acct-1', name: 's', uid: 's' }
const createVolume = (node: NodeName, spec: Omit<VolumeSpec, 'storage' | 'sizeGibibytes'>) => store.create(Volume, { metadata: volumeKey(node), spec: { storage, sizeGibibytes: 1, ...spec } })

async function boot(node: NodeName, pool: string | undefined): Promise<void> {
  await createVolume(node, { source: { kind: 'template', name: 'tiny-linux' }, ...(pool === undefined ? {} : { pool }) })
  const spec = instanceSpec()
  // The count begins by itself, so that nobody has to type.
  const userData = `#!/bin/sh\n(i=0; while :; do echo "count $i" > /dev/console; i=$((i+1)); sleep 0.05; done) &\n`
  await store.create(Secret, { metadata: { namespace: nodeNamespace(node), name: 'user-data' }, data: { userData: Buffer.from(userData).toString('base64') } } as unknown as Draft<unknown, unknown>) // as above
  await store.create(Instance, { metadata: key(node), spec: { ...spec, metadata: { ...spec.metadata, userDataSecretName: 'user-data' } } })
  await statusWhen('the guest to run', node, ({ state }) => state === 'running')
  await eventually('the count', async () => /count 5\r?\n/.test(await consoleOf(node)) || undefined)
}

type Fault = (from: NodeName, to: NodeName) => Promise<void>

/** One move with as many attempts as it takes. What the guest printed at the sender. */
async function move(from: NodeName, isShared: boolean, faults: readonly Fault[]): Promise<string> {
  const to = other(from)
  const id = `op-${++operations}`
  const mirroredVolumes = isShared ? [] : ['boot']
  const spec = (await store.get(Instance, key(from)))?.spec
  const held = await store.get(Volume, volumeKey(from))
  if (spec === undefined || held?.status?.origin === undefined) throw new Error('nothing to move')
  const { origin } = held.status
  await createVolume(to, { origin, ...(held.spec.pool === undefined ? { source: { kind: 'mirror', name: id } } : { pool: held.spec.pool, isRetained: true }) })
  const { userDataSecretName: _name, ...metadata } = spec.metadata
  const receive = { id, attempt: 1, mirroredVolumes, secretName: KEY_SECRET }
  await store.create(Instance, { metadata: key(to), spec: { ...spec, metadata, receive } })

  for (let attempt = 1; ; attempt++) {
    if (attempt > 1) await store.patch(Instance, key(to), { spec: { receive: { attempt } } })
    const isOf = ({ transfer }: InstanceStatus) => transfer?.id === id && transfer.attempt === attempt
    const { transfer } = await statusWhen('the receiver', to, (status) => isOf(status) && (status.transfer?.phase === 'failed' || (status.transfer?.phase === 'transferring' && status.transfer.port !== undefined)))
    if (transfer?.phase === 'failed') continue
    await store.patch(Instance, key(from), { spec: { send: { ...receive, attempt, ...ORDERS, host: transfer?.host, port: transfer?.port, ...(transfer?.diskPort === undefined ? {} : { diskPort: transfer.diskPort }) } } })
    if (attempt === 1) for (const fault of faults) await fault(from, to)
    const end = await statusWhen('the end of the sending', from, (status) => isOf(status) && status.transfer?.role === 'send' && ['completed', 'failed'].includes(status.transfer.phase))
    if (end.transfer?.phase === 'failed') {
      expect(end.state).toBe('running')
      expect(attempt).toBeLessThan(4)
      continue
    }
    expect(end.state).toBe('handed_over')
    await statusWhen('the guest', to, (status) => status.state === 'running' && status.transfer?.phase === 'completed' && status.incarnation === spec.incarnation)
    break
  }
  const printed = await consoleOf(from)
  if (held.spec.pool !== undefined) await store.patch(Volume, volumeKey(from), { spec: { isRetained: true } })
  await store.delete(Instance, key(from))
  await store.delete(Volume, volumeKey(from))
  await eventually('the sender to be empty', async () => ((await store.get(Volume, volumeKey(from))) === undefined && (await store.get(Instance, key(from))) === undefined) || undefined)
  await store.patch(Instance, key(to), { spec: { receive: null } })
  if (held.spec.pool !== undefined) await store.patch(Volume, volumeKey(to), { spec: { isRetained: null } })
  return printed
}

const sometime: Fault = () => clock.sleep(random.fraction() * 1_000)
const restart = (pick: (from: NodeName, to: NodeName) => NodeName): Fault => async (from, to) => {
  await killAgent(pick(from, to))
  await startAgent(pick(from, to))
}
const restartSource = restart((from) => from)
const restartTarget = restart((_from, to) => to)
const restartBoth: Fault = async (from, to) => void (await Promise.all([restartSource(from, to), restartTarget(from, to)]))
/** As long as it has not become the guest. */
const killReceiver: Fault = async (_from, to) => {
  const { state } = (await store.get(Instance, key(to)))?.status ?? {}
  const pid = await guestPid(to)
  if (state === 'receiving' && pid > 0 && !(await hasArrived(to))) signalProcess(pid, 'SIGKILL')
}
const hasArrived = async (node: NodeName): Promise<boolean> => (await consoleOf(node)) !== ''

const STORY: readonly (readonly Fault[])[] = [
  [], [restartSource], [restartTarget], [restartBoth], [killReceiver], [],
  [sometime, restartSource], [sometime, restartTarget], [sometime, restartBoth], [restartSource, sometime, restartTarget],
]

describe.each([['shared storage', true], ['disks of their own', false]])('a guest that counts, between hosts with %s', (_where, isShared) => {
  it('goes on counting wherever it is', async () => {
    const pool = isShared ? (await store.get(NodeReport, { namespace: nodeNamespace('alpha'), name: NODE_REPORT_NAME }))?.spec.pools?.[0] : undefined
    expect(pool !== undefined).toBe(isShared)
    let at: NodeName = 'alpha'
    await boot(at, pool)
    let printed = ''
    for (const faults of STORY) {
      printed += await move(at, isShared, faults)
      at = other(at)
      const before = counts(printed).at(-1) ?? 0
      await eventually('the count to go on', async () => (counts(printed + await consoleOf(at)).at(-1) ?? 0) > before + 3 || undefined)
    }
    const numbers = counts(printed + await consoleOf(at))
    expect(numbers.length).toBeGreaterThan(STORY.length)
    expect(numbers).toEqual(numbers.map((_number, index) => index))

    await store.delete(Instance, key(at))
    await store.delete(Volume, volumeKey(at))
    await eventually('the end of everything', async () => ((await store.get(Volume, volumeKey(at))) === undefined && (await store.get(Instance, key(at))) === undefined) || undefined)
    await store.delete(Secret, { namespace: nodeNamespace('alpha'), name: 'user-data' })
    for (const node of NODES) expect([await readdir(join(folder, node, 'guests')), await readdir(join(folder, node, 'volumes'))]).toEqual([[], []])
    expect(await readdir(join(folder, 'shared', 'volumes'))).toEqual([])
  })
})

/** Numbers of the whole lines. */
const counts = (text: string): number[] => [...text.matchAll(/count (\d+)\r?\n/g)].map(([, number]) => Number(number))

it('copies the disk of a guest that stands still', async () => {
  await createVolume('alpha', { source: { kind: 'template', name: 'tiny-linux' } })
  const { origin } = await volumeWhen('the disk', 'alpha', ({ state }) => state === 'ready')
  await store.patch(Volume, volumeKey('alpha'), { spec: { serve: { id: 'op-cold', secretName: KEY_SECRET } } })
  const { serving } = await volumeWhen('the server', 'alpha', (status) => status.serving !== undefined)
  if (serving === undefined || origin === undefined) throw new Error('unreachable')
  await createVolume('beta', { origin, source: { kind: 'copy', name: 'op-cold' } })
  await volumeWhen('the order', 'beta', ({ state }) => state === 'creating')
  // An agent that comes back serves it somewhere else.
  await killAgent('alpha')
  await startAgent('alpha')
  const again = await volumeWhen('the next server', 'alpha', (status) => status.serving !== undefined && status.serving.port !== serving.port)
  await store.patch(Volume, volumeKey('beta'), { spec: { copyFrom: { ...again.serving, secretName: KEY_SECRET } } })
  expect(await volumeWhen('the copy', 'beta', ({ state }) => state === 'ready')).toMatchObject({ origin, sizeGibibytes: 1 })
  await store.patch(Volume, volumeKey('alpha'), { spec: { serve: null } })
  await volumeWhen('the end of serving', 'alpha', (status) => status.serving === undefined)
  for (const node of NODES) {
    await store.delete(Volume, volumeKey(node))
    await eventually('the end of the disk', async () => (await store.get(Volume, volumeKey(node))) === undefined || undefined)
  }
})
