/** A guest that does not release a disk that was detached by force, and a live move of it: refused while it has the
 *  device, and done once it has none. Real QEMU on both hosts; the test plays the controllers. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CUT_OFF_DETAIL } from '../../../agents/node/instance/plan.ts'
import {
  AGENT_FINALIZER,
  Instance,
  type InstanceStatus,
  nodeNamespace,
  Volume,
} from '../../../resources/instance/index.ts'
import { Unrecoverable, until } from '../../eventually.ts'
import {
  counts,
  disorderIn,
  instanceKey,
  KEY_SECRET,
  openTwoAgents,
  PRINT_COUNT,
  type TwoAgents,
} from './two-agents.ts'

const ID = 'op-1'
/** ACPI tells the guest by this event that a device is to go. It hears nothing until somebody connects to it by SSH. */
const EVENT = '/sys/firmware/acpi/interrupts/gpe01'
const SCRIPT = `echo mask > ${EVENT}
(until grep -q ':0016 [0-9A-F:]* 01 ' /proc/net/tcp /proc/net/tcp6; do sleep 0.2; done; echo unmask > ${EVENT}) &
(i=0; while :; do ${PRINT_COUNT}; i=$((i+1)); sleep 0.2; done) &
`
const [BOOT, DATA] = [
  { volume: 'boot', serial: 'boot' },
  { volume: 'data', serial: 'data', slot: 1 },
]
const LIMITS = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 120, isCancelled: false }

let hosts: TwoAgents
beforeAll(async () => void (hosts = await openTwoAgents()))
afterAll(() => hosts?.close())

const patch = (spec: object) => hosts.store.patch(Instance, instanceKey('alpha'), { spec })
const has = async () => (await hosts.store.get(Instance, instanceKey('alpha')))?.status?.volumes ?? []

/** One attempt of the move, as far as its sender ends it. */
async function attemptOf(attempt: number): Promise<NonNullable<InstanceStatus['transfer']>> {
  const receive = { id: ID, attempt, mirroredVolumes: [], secretName: KEY_SECRET }
  if (attempt > 1) await hosts.store.patch(Instance, instanceKey('beta'), { spec: { receive } })
  const isOf = ({ transfer }: InstanceStatus) => transfer?.id === ID && transfer.attempt === attempt
  const { transfer: at } = await hosts.statusWhen(
    'the receiver',
    'beta',
    (status) => isOf(status) && status.transfer?.port !== undefined,
  )
  await patch({ send: { ...receive, ...LIMITS, host: at?.host, port: at?.port } })
  const { transfer } = await hosts.statusWhen(
    'the end of the attempt',
    'alpha',
    (status) => isOf(status) && ['failed', 'completed'].includes(status.transfer?.phase ?? ''),
  )
  if (transfer === undefined) throw new Error('no attempt')
  return transfer
}

it('is not sent while it has the device, keeps running, and is sent once it has released it', async () => {
  const pool = await hosts.pool()
  await hosts.boot('alpha', pool, SCRIPT)
  const key = { namespace: nodeNamespace('alpha'), name: DATA.volume }
  await hosts.store.create(Volume, {
    metadata: { ...key, finalizers: [AGENT_FINALIZER] },
    spec: { storage: { namespace: 'acct-1', name: 'd', uid: 'd' }, sizeGibibytes: 1 },
  })
  await patch({ disks: [BOOT, DATA] })
  await until('the disk', has, (volumes) => volumes.includes('data'))
  await patch({ disks: [BOOT], forcedVolumes: ['data'] })
  await until('the end of the disk', has, (volumes) => !volumes.includes('data'))
  await hosts.store.delete(Volume, key) // the disk is deleted; the device of the guest is another matter

  const { spec, status } = (await hosts.store.get(Instance, instanceKey('alpha'))) ?? {}
  const held = await hosts.volumeWhen('the disk', 'alpha', ({ origin }) => origin !== undefined)
  if (spec === undefined || pool === undefined) throw new Error('nothing to move')
  await hosts.createVolume('beta', { origin: held.origin, pool, isRetained: true })
  const { userDataSecretName: _name, ...metadata } = spec.metadata
  const { forcedVolumes: _forced, ...wanted } = spec
  await hosts.store.create(Instance, {
    metadata: { ...instanceKey('beta'), finalizers: [AGENT_FINALIZER] },
    spec: { ...wanted, metadata, receive: { id: ID, attempt: 1, mirroredVolumes: [], secretName: KEY_SECRET } },
  })

  expect(await attemptOf(1)).toMatchObject({ role: 'send', phase: 'failed', detail: CUT_OFF_DETAIL })
  // An agent that is started anew finds the device, and refuses it as well.
  await hosts.killAgent('alpha')
  await hosts.startAgent('alpha')
  expect(await attemptOf(2)).toMatchObject({ role: 'send', phase: 'failed', detail: CUT_OFF_DETAIL })
  const printed = counts(await hosts.consoleOf('alpha')).length
  await hosts.printedWhen('more of the count', 'alpha', (text) => counts(text).length > printed)

  const forward = status?.forwards?.find(({ guestPort }) => guestPort === 22)
  const socket = connect({ host: forward?.host ?? '', port: forward?.hostPort ?? 0 }).on('error', () => undefined)
  try {
    let attempt = 2
    await until(
      'a move that is not refused',
      () => attemptOf(++attempt),
      ({ phase, detail }) => {
        if (phase === 'failed' && detail !== CUT_OFF_DETAIL) throw new Unrecoverable(detail) // for no other reason
        return phase === 'completed'
      },
    )
  } finally {
    socket.destroy()
  }
  await hosts.statusWhen(
    'the guest',
    'beta',
    ({ state, transfer }) => state === 'running' && transfer?.phase === 'completed',
  )
  const before = await hosts.consoleOf('alpha')
  await hosts.printedWhen('more of the count', 'beta', (text) => counts(text).length > 5)
  expect(disorderIn(before + (await hosts.consoleOf('beta')))).toBe('')
})
