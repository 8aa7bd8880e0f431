/** A guest that writes to its memory faster than the link carries it is moved under each policy, by real QEMU: what
 *  makes such a guest arrive is how long it may stand still, and one that may not for long enough stays. And a guest
 *  whose QEMU dies while it is sent, which must not come to life anywhere by itself. The test plays the controllers. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIGRATION_POLICIES, type MigrationPolicyName } from '../../../domain/server/migration-policies.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { AGENT_FINALIZER, Instance, type InstanceStatus, Volume } from '../../../resources/instance/index.ts'
import { eventually } from '../../eventually.ts'
import {
  counts,
  disorderIn,
  instanceKey,
  KEY_SECRET,
  type NodeName,
  openTwoAgents,
  PRINT_COUNT,
  type TwoAgents,
  volumeKey,
} from './two-agents.ts'

/** Of the file that the guest writes over and over: what is left after each pass, since it is written more often than
 *  it can be sent. */
const BUSY_MEBIBYTES = 24
/** Of alpha's link, which carries the file within 2 s and not within 300 ms. */
const WIDE_MEBIBYTES_PER_SECOND = 16
/** Of beta's, which carries it within 5 s and not within 2 s. */
const NARROW_MEBIBYTES_PER_SECOND = 8

const BUSY = `head -c 1048576 /dev/urandom > /tmp/block
blocks=$(for number in $(seq ${BUSY_MEBIBYTES}); do echo /tmp/block; done)
(i=0; while :; do cat $blocks 1<> /tmp/busy; ${PRINT_COUNT}; i=$((i+1)); done) &
`

let hosts: TwoAgents
let printed = ''

beforeAll(async () => {
  hosts = await openTwoAgents({
    alpha: { SVCCLOUD_MIGRATION_BANDWIDTH: String(WIDE_MEBIBYTES_PER_SECOND) },
    beta: { SVCCLOUD_MIGRATION_BANDWIDTH: String(NARROW_MEBIBYTES_PER_SECOND) },
  })
  await hosts.boot('alpha', await hosts.pool(), BUSY)
})
afterAll(() => hosts.close())

/** Makes the other host ready and has the guest sent, as the controllers do in their first attempt under the policy. */
async function send(
  id: string,
  from: NodeName,
  to: NodeName,
  policy: MigrationPolicyName,
  timeoutSeconds: number,
): Promise<void> {
  const spec = (await hosts.store.get(Instance, instanceKey(from)))?.spec
  const held = await hosts.store.get(Volume, volumeKey(from))
  if (spec === undefined || held?.status?.origin === undefined || held.spec.pool === undefined)
    throw new Error('nothing to move')
  await hosts.createVolume(to, { origin: held.status.origin, pool: held.spec.pool, isRetained: true })
  const { send: _earlier, ...definition } = spec
  const { userDataSecretName: _name, ...metadata } = spec.metadata
  const receive = { id, attempt: 1, mirroredVolumes: [], secretName: KEY_SECRET }
  await hosts.store.create(Instance, {
    metadata: { ...instanceKey(to), finalizers: [AGENT_FINALIZER] },
    spec: { ...definition, metadata, receive },
  })
  const { transfer } = await hosts.statusWhen(
    'the receiver',
    to,
    ({ transfer }) => transfer?.id === id && transfer.phase === 'transferring' && transfer.port !== undefined,
  )
  const { downtimeLimitMilliseconds } = MIGRATION_POLICIES[policy]
  await hosts.store.patch(Instance, instanceKey(from), {
    spec: {
      send: {
        ...receive,
        host: transfer?.host,
        port: transfer?.port,
        downtimeLimitMilliseconds,
        isThrottled: false,
        timeoutSeconds,
        isCancelled: false,
      },
    },
  })
}

type Transfer = NonNullable<InstanceStatus['transfer']>
async function transferWhen(
  what: string,
  node: NodeName,
  id: string,
  isWanted: (transfer: Transfer, status: InstanceStatus) => boolean,
): Promise<{ status: InstanceStatus; transfer: Transfer }> {
  const status = await hosts.statusWhen(what, node, (seen) => seen.transfer?.id === id && isWanted(seen.transfer, seen))
  if (status.transfer === undefined) throw new Error('unreachable')
  return { status, transfer: status.transfer }
}
const sendingEnd = (node: NodeName, id: string) =>
  transferWhen(
    'the end of the sending',
    node,
    id,
    ({ role, phase }) => role === 'send' && ['completed', 'failed'].includes(phase),
  )

/** Takes away what a host still has of the guest; its disk is the other's, too. */
async function clear(node: NodeName): Promise<void> {
  if ((await hosts.store.get(Volume, volumeKey(node)))?.spec.isRetained !== true)
    await hosts.store.patch(Volume, volumeKey(node), { spec: { isRetained: true } })
  await hosts.store.delete(Instance, instanceKey(node))
  await hosts.store.delete(Volume, volumeKey(node))
  await eventually(`${node} to be empty`, async () => (await hosts.isEmpty(node)) || undefined)
}

/** The guest is written to and counts on, from where it was: nothing is left out or done twice. */
async function countsOn(node: NodeName): Promise<void> {
  const before = counts(printed + (await hosts.consoleOf(node))).length
  await hosts.printedWhen('the count to go on', node, (text) => counts(printed + text).length > before + 2)
  expect(disorderIn(printed + (await hosts.consoleOf(node)))).toBe('')
}

/** The guest goes from the one to the other in spite of its work. */
async function arrives(id: string, from: NodeName, to: NodeName, policy: MigrationPolicyName): Promise<void> {
  await send(id, from, to, policy, 55)
  const { status, transfer } = await sendingEnd(from, id)
  expect(transfer.transferredBytes).toBeGreaterThan(transfer.totalBytes)
  expect({ state: status.state, phase: transfer.phase, detail: transfer.detail }).toEqual({
    state: 'handed_over',
    phase: 'completed',
    detail: '',
  })
  await transferWhen('the guest', to, id, ({ phase }, { state }) => state === 'running' && phase === 'completed')
  printed += await hosts.consoleOf(from)
  await clear(from)
  await hosts.store.patch(Instance, instanceKey(to), { spec: { receive: null } })
  await hosts.store.patch(Volume, volumeKey(to), { spec: { isRetained: null } })
  await countsOn(to)
}

it('stays and keeps running when the allowed pause is too short', async () => {
  await send('op-strict', 'alpha', 'beta', 'strict', 12)
  const { status, transfer } = await sendingEnd('alpha', 'op-strict')
  expect({ state: status.state, phase: transfer.phase, detail: transfer.detail }).toEqual({
    state: 'running',
    phase: 'failed',
    detail: 'not done in time',
  })
  expect(transfer.transferredBytes).toBeGreaterThan(transfer.totalBytes)
  expect((await hosts.store.get(Instance, instanceKey('beta')))?.status?.state).not.toBe('running')
  await clear('beta')
  await countsOn('alpha')
})

it('arrives under the default policy, once the pause may be as long as the rest takes', async () => {
  await arrives('op-default', 'alpha', 'beta', 'default')
})

it('arrives under the relaxed policy over a link that is half as wide', async () => {
  await arrives('op-relaxed', 'beta', 'alpha', 'relaxed')
})

it('comes to life nowhere by itself when its QEMU dies while it is sent', async () => {
  await send('op-dies', 'alpha', 'beta', 'strict', 55)
  await transferWhen(
    'a good part of the memory',
    'alpha',
    'op-dies',
    ({ phase, transferredBytes }) => phase === 'transferring' && transferredBytes > BUSY_MEBIBYTES * 1024 ** 2,
  )
  const [source, target] = [await hosts.guestPid('alpha'), await hosts.guestPid('beta')]
  signalProcess(source, 'SIGKILL')

  // Whether it arrived only the receiver knows: the sender says that it is not here, not that it crashed.
  const lost = await sendingEnd('alpha', 'op-dies')
  expect(lost.status).toMatchObject({
    state: 'handed_over',
    incarnation: 1,
    transfer: { phase: 'completed', detail: 'the guest ended while it was sent' },
  })
  expect(lost.status.endReason).toBeUndefined()
  const receiver = await transferWhen(
    'the end of the receiver',
    'beta',
    'op-dies',
    ({ role, phase }) => role === 'receive' && phase === 'failed',
  )
  expect(receiver.status).toMatchObject({ state: 'stopped' })
  expect(receiver.status.startedAt).toBeUndefined()
  await eventually(
    'the end of both processes',
    () => [source, target].every((pid) => !signalProcess(pid, 0)) || undefined,
  )
  expect(await hosts.consoleOf('beta')).toBe('')

  // An agent that comes back sees the same and starts nothing.
  await hosts.killAgent('alpha')
  await hosts.startAgent('alpha')
  expect((await sendingEnd('alpha', 'op-dies')).status).toMatchObject({ state: 'handed_over', incarnation: 1 })
  expect(
    [await hosts.guestPid('alpha'), await hosts.guestPid('beta')].filter((pid) => pid > 0 && signalProcess(pid, 0)),
  ).toEqual([])

  // The controllers settle it: the next incarnation, where its disk is.
  await clear('beta')
  await hosts.store.patch(Instance, instanceKey('alpha'), { spec: { incarnation: 2, send: null } })
  await hosts.statusWhen(
    'the next incarnation',
    'alpha',
    ({ state, incarnation }) => state === 'running' && incarnation === 2,
  )
})
