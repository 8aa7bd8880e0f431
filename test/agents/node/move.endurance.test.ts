/** A guest that counts on its console goes back and forth between two agents' processes, which are killed on the way,
 *  and so is what receives it.
 *  The test plays the controllers. Whatever happens, the count goes on by one: it never jumps back, forks or stands
 *  still for good. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { AGENT_FINALIZER, Instance, type InstanceStatus, Volume } from '../../../resources/instance/index.ts'
import { eventually } from '../../eventually.ts'
import {
  counts,
  disorderIn,
  instanceKey as key,
  KEY_SECRET,
  type NodeName,
  NODES,
  openTwoAgents,
  other,
  PRINT_COUNT,
  type TwoAgents,
  volumeKey,
} from './two-agents.ts'

const ORDERS = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 60, isCancelled: false }

const COUNT = `(i=0; while :; do ${PRINT_COUNT}; i=$((i+1)); sleep 0.05; done) &\n`

let hosts: TwoAgents
let operations = 0

// Separate hosts for each test: what one leaves behind when it fails is in nobody's way.
beforeEach(async () => void (hosts = await openTwoAgents()))
afterEach(() => hosts.close())

type Fault = (from: NodeName, to: NodeName) => Promise<void>

/** One move with as many attempts as it takes. What the guest printed at the sender. */
async function move(from: NodeName, isShared: boolean, faults: readonly Fault[]): Promise<string> {
  const to = other(from)
  const id = `op-${++operations}`
  const mirroredVolumes = isShared ? [] : ['boot']
  const spec = (await hosts.store.get(Instance, key(from)))?.spec
  const held = await hosts.store.get(Volume, volumeKey(from))
  if (spec === undefined || held?.status?.origin === undefined) throw new Error('nothing to move')
  const { origin } = held.status
  await hosts.createVolume(to, {
    origin,
    ...(held.spec.pool === undefined
      ? { source: { kind: 'mirror', name: id } }
      : { pool: held.spec.pool, isRetained: true }),
  })
  const { userDataSecretName: _name, ...metadata } = spec.metadata
  const receive = { id, attempt: 1, mirroredVolumes, secretName: KEY_SECRET }
  await hosts.store.create(Instance, {
    metadata: { ...key(to), finalizers: [AGENT_FINALIZER] },
    spec: { ...spec, metadata, receive },
  })

  for (let attempt = 1; ; attempt++) {
    if (attempt > 1) await hosts.store.patch(Instance, key(to), { spec: { receive: { attempt } } })
    const isOf = ({ transfer }: InstanceStatus) => transfer?.id === id && transfer.attempt === attempt
    const { transfer } = await hosts.statusWhen(
      'the receiver',
      to,
      (status) =>
        isOf(status) &&
        (status.transfer?.phase === 'failed' ||
          (status.transfer?.phase === 'transferring' && status.transfer.port !== undefined)),
    )
    if (transfer?.phase === 'failed') continue
    await hosts.store.patch(Instance, key(from), {
      spec: {
        send: {
          ...receive,
          attempt,
          ...ORDERS,
          host: transfer?.host,
          port: transfer?.port,
          ...defined({ diskPort: transfer?.diskPort }),
        },
      },
    })
    if (attempt === 1) for (const fault of faults) await fault(from, to)
    const end = await hosts.statusWhen(
      'the end of the sending',
      from,
      (status) =>
        isOf(status) && status.transfer?.role === 'send' && ['completed', 'failed'].includes(status.transfer.phase),
    )
    if (end.transfer?.phase === 'failed') {
      expect(end.state).toBe('running')
      expect(attempt).toBeLessThan(4)
      continue
    }
    expect(end.state).toBe('handed_over')
    await hosts.statusWhen(
      'the guest',
      to,
      (status) =>
        status.state === 'running' && status.transfer?.phase === 'completed' && status.incarnation === spec.incarnation,
    )
    break
  }
  const printed = await hosts.consoleOf(from)
  if (held.spec.pool !== undefined) await hosts.store.patch(Volume, volumeKey(from), { spec: { isRetained: true } })
  await hosts.store.delete(Instance, key(from))
  await hosts.store.delete(Volume, volumeKey(from))
  await eventually('the sender to be empty', async () => (await hosts.isEmpty(from)) || undefined)
  await hosts.store.patch(Instance, key(to), { spec: { receive: null } })
  const ended = held.spec.pool === undefined ? { isCurrent: true } : { isRetained: null }
  await hosts.store.patch(Volume, volumeKey(to), { spec: ended })
  return printed
}

const sometime: Fault = () => clock.sleep(random.fraction() * 1_000)
const restart =
  (pick: (from: NodeName, to: NodeName) => NodeName): Fault =>
  async (from, to) => {
    await hosts.killAgent(pick(from, to))
    await hosts.startAgent(pick(from, to))
  }
const restartSource = restart((from) => from)
const restartTarget = restart((_from, to) => to)
const restartBoth: Fault = async (from, to) =>
  void (await Promise.all([restartSource(from, to), restartTarget(from, to)]))
/** As long as it has not become the guest: one that prints at the sender, while no agent can order the hand-over, is
 *  not handed over. */
const killReceiver: Fault = async (from, to) => {
  hosts.pauseAgent(from)
  const before = await hosts.consoleOf(from)
  await clock.sleep(1_000)
  const pid = await hosts.guestPid(to)
  if (pid > 0 && (await hosts.consoleOf(from)) !== before) signalProcess(pid, 'SIGKILL')
  hosts.resumeAgent(from)
}

const STORY: readonly (readonly Fault[])[] = [
  [],
  [restartSource],
  [restartTarget],
  [restartBoth],
  [killReceiver],
  [],
  [sometime, restartSource],
  [sometime, restartTarget],
  [sometime, restartBoth],
  [restartSource, sometime, restartTarget],
]

/** Half a minute on a machine that does nothing else. */
const STORY_MILLISECONDS = 600_000

describe.each([
  ['shared storage', true],
  ['disks of their own', false],
])('a guest that counts, between hosts with %s', (_where, isShared) => {
  it('keeps counting on every host', { timeout: STORY_MILLISECONDS }, async () => {
    const pool = isShared ? await hosts.pool() : undefined
    expect(pool !== undefined).toBe(isShared)
    let at: NodeName = 'alpha'
    await hosts.boot(at, pool, COUNT)
    let printed = ''
    for (const faults of STORY) {
      printed += await move(at, isShared, faults)
      at = other(at)
      const before = counts(printed).at(-1) ?? 0
      await hosts.printedWhen(
        `the count to go on after ${before}`,
        at,
        (text) => (counts(printed + text).at(-1) ?? 0) > before + 3,
      )
    }
    const all = printed + (await hosts.consoleOf(at))
    expect(counts(all).length).toBeGreaterThan(STORY.length)
    expect(disorderIn(all)).toBe('')

    await hosts.store.delete(Instance, key(at))
    await hosts.store.delete(Volume, volumeKey(at))
    await eventually('the end of everything', async () => (await hosts.isEmpty(at)) || undefined)
    await hosts.forgetUserData('alpha')
    for (const node of NODES)
      expect([
        await readdir(join(hosts.folder, node, 'guests')),
        await readdir(join(hosts.folder, node, 'volumes')),
      ]).toEqual([[], []])
    expect(await readdir(join(hosts.folder, 'shared', 'volumes'))).toEqual([])
  })
})

it('copies the disk of a paused guest', async () => {
  await hosts.createVolume('alpha', { source: { kind: 'template', name: 'tiny-linux' } })
  const { origin } = await hosts.volumeWhen('the disk', 'alpha', ({ state }) => state === 'ready')
  await hosts.store.patch(Volume, volumeKey('alpha'), { spec: { serve: { id: 'op-cold', secretName: KEY_SECRET } } })
  const { serving } = await hosts.volumeWhen('the server', 'alpha', (status) => status.serving !== undefined)
  if (serving === undefined || origin === undefined) throw new Error('unreachable')
  await hosts.createVolume('beta', { origin, source: { kind: 'copy', name: 'op-cold' } })
  await hosts.volumeWhen('the order', 'beta', ({ state }) => state === 'creating')
  // An agent that comes back serves it somewhere else.
  await hosts.killAgent('alpha')
  await hosts.startAgent('alpha')
  const again = await hosts.volumeWhen(
    'the next server',
    'alpha',
    (status) => status.serving !== undefined && status.serving.port !== serving.port,
  )
  await hosts.store.patch(Volume, volumeKey('beta'), {
    spec: { copyFrom: { ...again.serving, secretName: KEY_SECRET } },
  })
  expect(await hosts.volumeWhen('the copy', 'beta', ({ state }) => state === 'ready')).toMatchObject({
    origin,
    sizeGibibytes: 1,
  })
  await hosts.store.patch(Volume, volumeKey('alpha'), { spec: { serve: null } })
  await hosts.volumeWhen('the end of serving', 'alpha', (status) => status.serving === undefined)
  for (const node of NODES) {
    await hosts.store.delete(Volume, volumeKey(node))
    await eventually('the end of the disk', async () => (await hosts.isEmpty(node)) || undefined)
  }
})
