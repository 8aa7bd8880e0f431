import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { Guest, Transfer } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import {
  CUT_OFF_DETAIL,
  planInstance,
  type InstanceObject,
  type ObservedInstance,
} from '../../../agents/node/instance/plan.ts'
import type { LedgerEntry } from '../../../agents/node/ledger.ts'
import type { InstanceSpec, InstanceStatus } from '../../../resources/instance/index.ts'
import { instanceSpec } from './instance-spec.ts'

const NOW = new Date('2030-01-01T00:01:00.000Z')
const secondsAgo = (seconds: number) => new Date(NOW.getTime() - seconds * 1000).toISOString()
const READY: ObservedInstance['image'] = {
  is: 'ready',
  image: { name: 'tiny-linux', version: '1', boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' } },
}

const soft = { id: 'op-1', type: 'soft', timeoutSeconds: 60, timeoutAction: 'hard' } as const

interface Row {
  readonly why: string
  readonly spec?: Partial<InstanceSpec>
  readonly generation?: number
  readonly isDeleting?: boolean
  /** Made so many seconds ago, and not reported on yet. */
  readonly madeSecondsAgo?: number
  readonly guest?: Partial<Guest>
  readonly entry?: Partial<LedgerEntry>
  readonly missingVolumes?: readonly string[]
  readonly guestVolumes?: readonly string[]
  readonly unheldVolumes?: readonly string[]
  readonly image?: ObservedInstance['image']
  readonly hasRoom?: boolean
  readonly removedAt?: string
  /** Of the move, as the status has it. */
  readonly reported?: Transfer
  readonly does: readonly string[]
}

const guest = (over: Partial<Guest>): Guest => ({
  name: 'i',
  uid: 'uid-1',
  incarnation: 1,
  state: 'running',
  isResponsive: true,
  startedAt: secondsAgo(30),
  forwards: [],
  disks: [],
  interfaces: [],
  ...over,
})
const entry = (over: Partial<LedgerEntry>): LedgerEntry => ({ uid: 'uid-1', generation: 1, incarnation: 1, ...over })

const own = { macAddress: '52:54:00:00:00:01', kind: 'public' } as const
const added = { macAddress: '52:54:00:00:00:02', kind: 'private', portName: 'port-1', slot: 1 } as const

const withData = [
  { volume: 'boot', serial: 'boot' },
  { volume: 'data', serial: 'data', slot: 1 },
]

const receive = { id: 'op-1', attempt: 2, mirroredVolumes: [], secretName: 's' }
const send = {
  ...receive,
  host: 'h',
  port: 1,
  downtimeLimitMilliseconds: 300,
  isThrottled: false,
  timeoutSeconds: 60,
  isCancelled: false,
}
const transfer = (over: Partial<Transfer>): Transfer => ({
  id: 'op-1',
  attempt: 2,
  role: 'receive',
  phase: 'transferring',
  iteration: 0,
  transferredBytes: 0,
  totalBytes: 0,
  dirtyBytesPerSecond: 0,
  downtimeMilliseconds: 0,
  detail: '',
  reportedAt: secondsAgo(1),
  ...over,
})
const awaited = (over: Partial<Transfer> = {}): Partial<Guest> => ({ state: 'receiving', transfer: transfer(over) })
const sent = (over: Partial<Transfer> = {}): Partial<Guest> => ({ transfer: transfer({ role: 'send', ...over }) })

/** An action in a few words. */
function summaryOf(action: Action): string {
  if (action.do === 'effect') {
    return [
      action.name,
      ...Object.values(action.input).map((value) =>
        typeof value === 'object' && value !== null && 'phase' in value ? String(value.phase) : String(value),
      ),
    ].join(' ')
  }
  if (action.do === 'status') {
    if (action.status['isRemoved'] === true) return 'removed'
    const {
      state,
      endReason,
      stop,
      transfer: told,
      isDiskFull,
      // as the plan writes it
    } = action.status as Pick<InstanceStatus, 'state' | 'endReason' | 'stop' | 'transfer' | 'isDiskFull'>
    return [
      'status',
      state,
      ...(endReason === undefined ? [] : [endReason]),
      ...(stop === undefined ? [] : [stop.outcome]),
      ...(told === undefined ? [] : [told.phase]),
      ...(isDiskFull === true ? ['full'] : []),
    ].join(' ')
  }
  return action.do === 'wait' ? `wait ${action.seconds}` : action.do
}

const rows: readonly Row[] = [
  { why: 'a new Instance is written into the ledger before anything is done for it', does: ['accept 1 0', 'wait 0'] },
  { why: 'a wanted incarnation is started', entry: { incarnation: 0 }, does: ['start 1', 'wait 0'] },
  {
    why: 'nothing is started without its disks',
    entry: { incarnation: 0 },
    missingVolumes: ['boot'],
    does: ['status waiting', 'wait 30'],
  },
  {
    why: 'of a disk that is made together with it nothing is said at first',
    entry: { incarnation: 0 },
    madeSecondsAgo: 4,
    missingVolumes: ['boot'],
    does: ['wait 30', 'wait 6'],
  },
  {
    why: 'but when that takes long',
    entry: { incarnation: 0 },
    madeSecondsAgo: 10,
    missingVolumes: ['boot'],
    does: ['status waiting', 'wait 30'],
  },
  {
    why: 'and when the clocks of host and Kubernetes disagree',
    entry: { incarnation: 0 },
    madeSecondsAgo: -1,
    missingVolumes: ['boot'],
    does: ['status waiting', 'wait 30'],
  },
  {
    why: 'an error is said at once',
    entry: { incarnation: 0 },
    madeSecondsAgo: 4,
    image: { is: 'unavailable', reason: 'no apt' },
    does: ['status error', 'prepare', 'wait 30'],
  },
  {
    why: 'a template that is not there is made',
    entry: { incarnation: 0 },
    image: { is: 'absent' },
    does: ['status waiting', 'prepare', 'wait 30'],
  },
  {
    why: 'a template that cannot be made is an error that says why',
    entry: { incarnation: 0 },
    image: { is: 'unavailable', reason: 'no apt' },
    does: ['status error', 'prepare', 'wait 30'],
  },
  {
    why: 'incarnation 0 was never asked to start',
    spec: { incarnation: 0 },
    entry: { incarnation: 0 },
    does: ['status stopped'],
  },
  { why: 'a running guest is left alone', guest: {}, entry: {}, does: ['status running'] },
  {
    why: 'a disk with a slot comes while it runs',
    spec: { disks: withData },
    guestVolumes: ['boot'],
    guest: {},
    entry: {},
    does: ['plug data', 'wait 0'],
  },
  {
    why: 'one that only the host has open is not there yet',
    spec: { disks: withData },
    guestVolumes: ['boot', 'data'],
    unheldVolumes: ['data'],
    guest: {},
    entry: { volumes: ['boot', 'data'] },
    does: ['plug data', 'wait 0'],
  },
  {
    why: 'where another was taken by force it is tried again until the guest has let go',
    spec: { disks: withData },
    guestVolumes: ['boot'],
    guest: { cutOffSlots: [1] },
    entry: { volumes: ['boot', 'data'] },
    does: ['plug data', 'status running', 'wait 2'],
  },
  {
    why: 'an interface that is on its way out comes back when it is wanted',
    spec: { interfaces: [own, added] },
    guest: { interfaces: ['i', 'port-1'], leavingInterfaces: ['port-1'] },
    entry: {},
    does: ['plugInterface port-1', 'wait 0'],
  },
  {
    why: 'an interface with a slot comes while it runs',
    spec: { interfaces: [own, added] },
    guest: { interfaces: ['i'] },
    entry: {},
    does: ['plugInterface port-1', 'wait 0'],
  },
  {
    why: 'and goes again, whatever the guest was made with stays',
    spec: { interfaces: [] },
    guest: { interfaces: ['i', 'port-1'] },
    entry: {},
    does: ['unplugInterface port-1', 'status running', 'wait 2'],
  },
  {
    why: 'a slot is freed before another interface comes there',
    spec: { interfaces: [own, { ...added, portName: 'port-2' }] },
    guest: { interfaces: ['i', 'port-1'] },
    entry: {},
    does: ['unplugInterface port-1', 'status running', 'wait 2'],
  },
  {
    why: 'a guest that does not answer keeps its interfaces',
    spec: { interfaces: [own, added] },
    guest: { interfaces: ['i'], isResponsive: false },
    entry: {},
    does: ['status running'],
  },
  {
    why: 'a guest that a full disk has paused waits for room',
    guest: { isDiskFull: true },
    hasRoom: false,
    entry: {},
    does: ['status running full', 'wait 5'],
  },
  {
    why: 'and goes on when there is room',
    guest: { isDiskFull: true },
    hasRoom: true,
    entry: {},
    does: ['resume', 'status running full', 'wait 5'],
  },
  {
    why: 'it gets no other disk and is not sent meanwhile',
    spec: { send, interfaces: [own, added] },
    guest: { isDiskFull: true, interfaces: ['i'] },
    hasRoom: false,
    entry: {},
    does: ['status running full', 'wait 5'],
  },
  {
    why: 'it is stopped where that is wanted',
    spec: { power: 'stopped', stop: { ...soft, type: 'hard' } },
    guest: { isDiskFull: true },
    hasRoom: true,
    entry: {},
    does: ['end requested op-1', 'wait 0'],
  },
  {
    why: 'an incarnation is started once: one that ended stays so',
    entry: { ended: { at: secondsAgo(1), reason: 'guest_shutdown' } },
    does: ['status stopped guest_shutdown'],
  },
  {
    why: 'a higher incarnation is started after the end of the one before',
    spec: { incarnation: 2 },
    entry: { ended: { at: secondsAgo(1), reason: 'crashed' } },
    does: ['start 2', 'wait 0'],
  },
  {
    why: 'an older spec than the one acted on changes nothing',
    spec: { incarnation: 9 },
    generation: 3,
    entry: { generation: 4 },
    guest: {},
    does: ['wait 60'],
  },
  {
    why: 'a newer spec is noted first',
    generation: 5,
    entry: { generation: 4 },
    guest: {},
    does: ['accept 5 1', 'wait 0'],
  },
  {
    why: 'the guest of another Instance of this name runs on',
    guest: { uid: 'uid-0' },
    entry: {},
    does: ['status error'],
  },
  {
    why: 'also when this one is to end',
    guest: { uid: 'uid-0' },
    spec: { power: 'stopped' },
    does: ['status error'],
  },
  {
    why: 'one that has ended makes room',
    guest: { uid: 'uid-0', state: 'gone' },
    entry: { uid: 'uid-0' },
    does: ['accept 1 1', 'wait 0'],
  },
  {
    why: 'an older incarnation than the ledger knows goes',
    guest: { incarnation: 1 },
    entry: { incarnation: 2 },
    spec: { incarnation: 2 },
    does: ['discard', 'wait 0'],
  },
  {
    why: 'a lost ledger learns from the guest',
    guest: { incarnation: 3 },
    spec: { incarnation: 3 },
    does: ['accept 1 3', 'wait 0'],
  },
  {
    why: 'what was started for an earlier Instance of this name is not started again',
    entry: { uid: 'uid-0', generation: 9, incarnation: 9 },
    does: ['accept 1 9', 'wait 0'],
  },

  {
    why: 'a soft stop begins by asking',
    spec: { power: 'stopped', stop: soft },
    guest: {},
    entry: {},
    does: ['requestStop op-1', 'wait 0'],
  },
  {
    why: 'and goes on asking',
    spec: { power: 'stopped', stop: soft },
    guest: {},
    entry: { stop: { id: 'op-1', since: secondsAgo(10) } },
    does: ['requestStop op-1', 'status stopping', 'wait 5'],
  },
  {
    why: 'but never beyond its timeout',
    spec: { power: 'stopped', stop: soft },
    guest: {},
    entry: { stop: { id: 'op-1', since: secondsAgo(58) } },
    does: ['requestStop op-1', 'status stopping', 'wait 2'],
  },
  {
    why: 'after the timeout the guest is ended',
    spec: { power: 'stopped', stop: soft },
    guest: {},
    entry: { stop: { id: 'op-1', since: secondsAgo(60) } },
    does: ['end requested op-1', 'wait 0'],
  },
  {
    why: 'or the stop is given up, as was asked',
    spec: { power: 'stopped', stop: { ...soft, timeoutAction: 'fail' } },
    guest: {},
    entry: { stop: { id: 'op-1', since: secondsAgo(60) } },
    does: ['giveUpStop op-1', 'wait 0'],
  },
  {
    why: 'a stop that was given up leaves the guest running',
    spec: { power: 'stopped', stop: soft },
    guest: {},
    entry: { stop: { id: 'op-1', since: secondsAgo(99), outcome: 'timed_out' } },
    does: ['status running timed_out'],
  },
  {
    why: 'another stop request starts anew',
    spec: { power: 'stopped', stop: { ...soft, id: 'op-2' } },
    guest: {},
    entry: { stop: { id: 'op-1', since: secondsAgo(99), outcome: 'timed_out' } },
    does: ['requestStop op-2', 'wait 0'],
  },
  {
    why: 'a hard stop does not ask',
    spec: { power: 'stopped', stop: { ...soft, type: 'hard' } },
    guest: {},
    entry: {},
    does: ['end requested op-1', 'wait 0'],
  },
  {
    why: 'a guest is stopped softly when nobody said how',
    spec: { power: 'stopped' },
    guest: {},
    entry: {},
    does: ['requestStop incarnation-1', 'wait 0'],
  },
  {
    why: 'a restart ends the guest first',
    spec: { incarnation: 2, stop: soft },
    guest: {},
    entry: {},
    does: ['requestStop op-1', 'wait 0'],
  },
  {
    why: 'a stop of what does not run is done',
    spec: { power: 'stopped', stop: soft },
    entry: { ended: { at: secondsAgo(9), reason: 'crashed' } },
    does: ['noteStopped op-1', 'wait 0'],
  },
  {
    why: 'and says so',
    spec: { power: 'stopped', stop: soft },
    entry: {
      ended: { at: secondsAgo(9), reason: 'requested' },
      stop: { id: 'op-1', since: secondsAgo(9), outcome: 'stopped' },
    },
    does: ['status stopped requested stopped'],
  },

  {
    why: 'a guest that powered itself off did so',
    guest: { state: 'off' },
    entry: {},
    does: ['end guest_shutdown', 'wait 0'],
  },
  {
    why: 'a guest that powered off because it was asked was asked',
    spec: { power: 'stopped', stop: soft },
    guest: { state: 'off' },
    entry: { stop: { id: 'op-1', since: secondsAgo(1) } },
    does: ['end requested op-1', 'wait 0'],
  },
  {
    why: 'a guest that powers off after its stop was given up did so itself',
    spec: { power: 'stopped', stop: soft },
    guest: { state: 'off' },
    entry: { stop: { id: 'op-1', since: secondsAgo(99), outcome: 'timed_out' } },
    does: ['end guest_shutdown', 'wait 0'],
  },
  { why: 'a guest that vanished crashed', guest: { state: 'gone' }, entry: {}, does: ['end crashed', 'wait 0'] },
  { why: 'a start that was begun and left nothing crashed', entry: {}, does: ['end crashed', 'wait 0'] },
  {
    why: 'a start that failed is an error',
    entry: { ended: { at: secondsAgo(1), reason: 'crashed', detail: 'no memory' } },
    does: ['status error crashed'],
  },
  {
    why: 'a guest that another node sends is waited for',
    spec: { receive },
    entry: { incarnation: 0 },
    does: ['receive 2', 'wait 0'],
  },
  {
    why: 'once its disks are here',
    spec: { receive },
    entry: { incarnation: 0 },
    missingVolumes: ['boot'],
    does: ['status waiting preparing', 'wait 30'],
  },
  {
    why: 'and what it boots later',
    spec: { receive },
    entry: { incarnation: 0 },
    image: { is: 'unavailable', reason: 'no such version' },
    does: ['status waiting preparing', 'prepare', 'wait 30'],
  },
  {
    why: 'and it is said where',
    spec: { receive },
    entry: { incarnation: 0 },
    guest: awaited(),
    does: ['status receiving transferring'],
  },
  {
    why: 'one that waits and is to be stopped has not run',
    spec: { receive, power: 'stopped' },
    entry: { incarnation: 0 },
    guest: awaited(),
    does: ['endReception failed', 'wait 0'],
  },
  {
    why: 'a new attempt begins anew',
    spec: { receive },
    entry: { incarnation: 0 },
    guest: awaited({ attempt: 1 }),
    does: ['endReception failed', 'wait 0'],
  },
  {
    why: 'nobody waits for what nobody sends',
    entry: { incarnation: 0 },
    guest: awaited(),
    does: ['endReception failed', 'wait 0'],
  },
  {
    why: 'a receiver that ended has failed',
    spec: { receive },
    entry: { incarnation: 0 },
    guest: { ...awaited(), state: 'gone' },
    does: ['endReception failed', 'wait 0'],
  },
  {
    why: 'and is not tried again by itself, nor booted',
    spec: { receive },
    entry: { incarnation: 0, transfer: transfer({ phase: 'failed' }) },
    does: ['status stopped failed'],
  },
  {
    why: 'a new attempt is',
    spec: { receive: { ...receive, attempt: 3 } },
    entry: { incarnation: 0, transfer: transfer({ phase: 'failed' }) },
    does: ['receive 3', 'wait 0'],
  },
  {
    why: 'one that has arrived is this incarnation',
    spec: { receive },
    entry: { incarnation: 0 },
    guest: { transfer: transfer({ phase: 'completed' }) },
    does: ['accept 1 1', 'wait 0'],
  },
  {
    why: 'its arrival outlives it',
    spec: { receive },
    entry: {},
    guest: { transfer: transfer({ phase: 'completed' }) },
    does: ['noteTransfer completed', 'wait 0'],
  },
  {
    why: 'and then it runs like any other',
    spec: { receive },
    entry: { transfer: transfer({ phase: 'completed' }) },
    guest: { transfer: transfer({ phase: 'completed' }) },
    does: ['status running completed'],
  },
  {
    why: 'and crashes like any other',
    spec: { receive },
    entry: { transfer: transfer({ phase: 'completed' }) },
    guest: { state: 'gone', transfer: transfer({ phase: 'completed' }) },
    does: ['end crashed', 'wait 0'],
  },
  {
    why: 'a higher incarnation of what shall be received is not booted either',
    spec: { receive, incarnation: 2 },
    entry: { ended: { at: secondsAgo(1), reason: 'crashed' }, transfer: transfer({ phase: 'completed' }) },
    does: ['status stopped crashed completed'],
  },

  { why: 'a guest is sent', spec: { send }, entry: {}, guest: {}, does: ['send 2', 'wait 0'] },
  {
    why: 'once it answers',
    spec: { send },
    entry: {},
    guest: { isResponsive: false },
    does: ['status running', 'wait 1'],
  },
  {
    why: 'and it is told how far',
    spec: { send },
    entry: {},
    guest: sent(),
    does: ['status running transferring', 'wait 1'],
  },
  {
    why: 'until it is cancelled',
    spec: { send: { ...send, isCancelled: true } },
    entry: {},
    guest: sent(),
    does: ['cancelSend', 'status running transferring', 'wait 1'],
  },
  {
    why: 'or nobody wants it any more',
    entry: {},
    guest: sent(),
    does: ['cancelSend', 'status running transferring', 'wait 1'],
  },
  {
    why: 'or another attempt is wanted',
    spec: { send: { ...send, attempt: 3 } },
    entry: {},
    guest: sent(),
    does: ['cancelSend', 'status running transferring', 'wait 1'],
  },
  {
    why: 'what was cancelled is not begun',
    spec: { send: { ...send, isCancelled: true } },
    entry: {},
    guest: {},
    does: ['status running failed'],
  },
  {
    why: 'a guest that has yet to release a disk taken by force is not sent',
    spec: { send },
    entry: {},
    guest: { cutOffSlots: [1] },
    does: ['status running failed'],
  },
  {
    why: 'and not in this attempt when it has released it since',
    spec: { send },
    entry: {},
    guest: {},
    reported: transfer({ role: 'send', phase: 'failed', detail: CUT_OFF_DETAIL }),
    does: ['status running failed'],
  },
  {
    why: 'but in the next one',
    spec: { send: { ...send, attempt: 3 } },
    entry: {},
    guest: {},
    reported: transfer({ role: 'send', phase: 'failed', detail: CUT_OFF_DETAIL }),
    does: ['send 3', 'wait 0'],
  },
  {
    why: 'also by a guest that was itself received',
    spec: { send: { ...send, id: 'op-2', isCancelled: true } },
    entry: { transfer: transfer({ phase: 'completed' }) },
    guest: { transfer: transfer({ phase: 'completed' }) },
    does: ['status running failed'],
  },
  {
    why: 'a failure outlives the agent',
    spec: { send },
    entry: {},
    guest: sent({ phase: 'failed' }),
    does: ['noteTransfer failed', 'wait 0'],
  },
  {
    why: 'and the guest goes on',
    spec: { send },
    entry: { transfer: transfer({ role: 'send', phase: 'failed' }) },
    guest: sent({ phase: 'failed' }),
    does: ['status running failed'],
  },
  {
    why: 'until the next attempt',
    spec: { send: { ...send, attempt: 3 } },
    entry: { transfer: transfer({ role: 'send', phase: 'failed' }) },
    guest: sent({ phase: 'failed' }),
    does: ['send 3', 'wait 0'],
  },
  {
    why: 'the hand-over is written down',
    spec: { send },
    entry: {},
    guest: { state: 'handed_over', ...sent({ phase: 'completed' }) },
    does: ['noteTransfer completed', 'wait 0'],
  },
  {
    why: 'and what was handed over stands still',
    spec: { send },
    entry: { transfer: transfer({ role: 'send', phase: 'completed' }) },
    guest: { state: 'handed_over', ...sent({ phase: 'completed' }) },
    does: ['status handed_over completed'],
  },
  {
    why: 'also when its process is gone',
    spec: { send },
    entry: { transfer: transfer({ role: 'send', phase: 'completed' }) },
    does: ['status handed_over completed'],
  },
  {
    why: 'also when nobody wants it sent any more',
    entry: { transfer: transfer({ role: 'send', phase: 'completed' }) },
    guest: { state: 'handed_over', ...sent({ phase: 'completed' }) },
    does: ['status handed_over completed'],
  },
  {
    why: 'only the next incarnation ends it',
    spec: { incarnation: 2 },
    entry: { transfer: transfer({ role: 'send', phase: 'completed' }) },
    guest: { state: 'handed_over', ...sent({ phase: 'completed' }) },
    does: ['end requested', 'wait 0'],
  },
  {
    why: 'a guest that vanished while it was sent may have arrived',
    spec: { send },
    entry: {},
    guest: { state: 'gone', ...sent() },
    does: ['noteTransfer completed', 'wait 0'],
  },
  {
    why: 'and it says so, whatever is left of it says of the transfer',
    spec: { send },
    entry: { transfer: transfer({ role: 'send', phase: 'completed' }) },
    guest: { state: 'gone', ...sent() },
    does: ['status handed_over completed'],
  },
  {
    why: 'a host that has forgotten the guest that it was told to send does not boot it again',
    spec: { send },
    entry: { incarnation: 0 },
    does: ['accept 1 1', 'wait 0'],
  },
  { why: 'and says that it has ended', spec: { send }, entry: { incarnation: 1 }, does: ['end crashed', 'wait 0'] },
  {
    why: 'one that has gone is left alone by an agent that does not know yet how its sending ended',
    spec: { send },
    entry: { transfer: transfer({ role: 'receive', phase: 'completed' }) },
    guest: { state: 'handed_over', ...sent() },
    does: ['wait 1'],
  },
  {
    why: 'one that powered itself off meanwhile is not sent',
    spec: { send },
    entry: {},
    guest: { state: 'off', ...sent() },
    does: ['cancelSend', 'wait 1'],
  },
  {
    why: 'and then it has powered itself off',
    spec: { send },
    entry: { transfer: transfer({ role: 'send', phase: 'failed' }) },
    guest: { state: 'off', ...sent({ phase: 'failed' }) },
    does: ['end guest_shutdown', 'wait 0'],
  },

  {
    why: 'an Instance that goes takes everything with it, whatever state it is in',
    isDeleting: true,
    guest: {},
    entry: {},
    generation: 0,
    does: ['forget', 'removed'],
  },
  {
    why: 'an older object of one that was removed begins nothing',
    spec: { power: 'running', incarnation: 1 },
    removedAt: secondsAgo(60),
    does: ['status error'],
  },
  {
    why: 'a guest whose removal was begun and not done goes on for an older object',
    spec: { power: 'running', incarnation: 1 },
    guest: {},
    entry: {},
    removedAt: secondsAgo(60),
    does: ['status running'],
  },
]

describe('the plan of an Instance', () => {
  it.each(rows)('$why', (row) => {
    const instance: InstanceObject = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Instance',
      spec: instanceSpec(row.spec),
      ...(row.reported === undefined
        ? {}
        : { status: { state: 'running', incarnation: 1, transfer: row.reported } as const }),
      metadata: {
        name: 'i',
        namespace: 'node-a',
        uid: 'uid-1',
        generation: row.generation ?? 1,
        ...(row.isDeleting ? { deletionTimestamp: secondsAgo(1) } : {}),
        ...(row.madeSecondsAgo === undefined ? {} : { creationTimestamp: secondsAgo(row.madeSecondsAgo) }),
      },
    }
    const observed: ObservedInstance = {
      guest: row.guest && guest(row.guest),
      entry: row.entry && entry(row.entry),
      missingVolumes: row.missingVolumes ?? [],
      guestVolumes: row.guestVolumes ?? [],
      unheldVolumes: row.unheldVolumes ?? [],
      image: row.image ?? READY,
      hasRoom: row.hasRoom,
      ...defined({ removedAt: row.removedAt }),
      hypervisor: 'simulated',
    }
    expect(planInstance(instance, observed, NOW).map(summaryOf)).toEqual(row.does)
  })

  describe('reports the progress of a sending once a second', () => {
    const current = transfer({ role: 'send', iteration: 7, reportedAt: NOW.toISOString() })
    const tellsOf = (told: Partial<Transfer>, known: Transfer = current) => {
      const instance: InstanceObject = {
        apiVersion: 'svccloud.dev/v1alpha1',
        kind: 'Instance',
        spec: instanceSpec({ send }),
        metadata: { name: 'i', namespace: 'node-a', uid: 'uid-1', generation: 1 },
        status: { state: 'running', incarnation: 1, transfer: transfer({ role: 'send', iteration: 3, ...told }) },
      }
      const noted = known.phase === 'transferring' ? {} : { transfer: known }
      const actions = planInstance(
        instance,
        {
          guest: guest({ transfer: known }),
          entry: entry(noted),
          missingVolumes: [],
          image: READY,
          hypervisor: 'simulated',
        },
        NOW,
      )
      return actions.flatMap((action): (string | number)[] =>
        action.do === 'status'
          ? [(action.status['transfer'] as Transfer).iteration]
          : action.do === 'wait'
            ? [`wait ${action.seconds}`]
            : [],
      ) // as the plan writes it
    }
    it.each([
      ['not again before its time', { reportedAt: secondsAgo(0.25) }, [3, 'wait 0.75']],
      ['again when it is time', { reportedAt: secondsAgo(1) }, [7, 'wait 1']],
      ['at once of another attempt', { attempt: 1, reportedAt: secondsAgo(0.25) }, [7, 'wait 1']],
      ['at once when the clock was set back', { reportedAt: secondsAgo(-30) }, [7, 'wait 1']],
    ] as const)('%s', (_why, told, expected) => expect(tellsOf(told)).toEqual(expected))

    it('and its end at once', () =>
      expect(tellsOf({ reportedAt: secondsAgo(0.25) }, { ...current, phase: 'failed' })).toEqual([7]))
  })

  it('never starts an incarnation that the ledger knows, and never two guests, for any observation', () => {
    for (const incarnation of [0, 1, 2]) {
      for (const known of [0, 1, 2]) {
        for (const state of [undefined, 'running', 'off', 'gone'] as const) {
          const instance: InstanceObject = {
            apiVersion: '',
            kind: 'Instance',
            spec: instanceSpec({ incarnation }),
            metadata: { name: 'i', uid: 'uid-1', generation: 1 },
          }
          const observed: ObservedInstance = {
            guest: state && guest({ state, incarnation: known }),
            entry: entry({ incarnation: known }),
            missingVolumes: [],
            image: READY,
            hypervisor: 'simulated',
          }
          const started = planInstance(instance, observed, NOW)
            .map(summaryOf)
            .filter((word) => word.startsWith('start'))
          if (state !== undefined || incarnation <= known) expect(started).toEqual([])
        }
      }
    }
  })

  const attempt = fc.record({ id: fc.constantFrom('op-1', 'op-2'), attempt: fc.integer({ min: 1, max: 3 }) })
  const transfers = fc
    .tuple(attempt, fc.constantFrom('receive', 'send'), fc.constantFrom('transferring', 'completed', 'failed'))
    .map(([of, role, phase]) => transfer({ ...of, role, phase }))
  const worlds = fc.record({
    power: fc.constantFrom('running', 'stopped'),
    wanted: fc.integer({ min: 0, max: 3 }),
    known: fc.integer({ min: 0, max: 3 }),
    receiveOrder: fc.option(attempt, { nil: undefined }),
    sendOrder: fc.option(fc.tuple(attempt, fc.boolean()), { nil: undefined }),
    isEnded: fc.boolean(),
    noted: fc.option(transfers, { nil: undefined }),
    here: fc.option(
      fc.record({
        state: fc.constantFrom('running', 'off', 'gone', 'receiving', 'handed_over'),
        incarnation: fc.integer({ min: 1, max: 3 }),
        moved: fc.option(transfers, { nil: undefined }),
      }),
      { nil: undefined },
    ),
  })

  type World = typeof worlds extends fc.Arbitrary<infer Value> ? Value : never

  function planOf({ power, wanted, known, receiveOrder, sendOrder, isEnded, noted, here }: World): readonly Action[] {
    const spec = instanceSpec({
      power,
      incarnation: wanted,
      ...(receiveOrder === undefined ? {} : { receive: { ...receive, ...receiveOrder } }),
      ...(sendOrder === undefined ? {} : { send: { ...send, ...sendOrder[0], isCancelled: sendOrder[1] } }),
    })
    const observed: ObservedInstance = {
      guest:
        here &&
        guest({
          state: here.state,
          incarnation: here.incarnation,
          ...defined({ transfer: here.moved }),
        }),
      entry: entry({
        incarnation: known,
        ...(isEnded ? { ended: { at: secondsAgo(9), reason: 'crashed' } } : {}),
        ...defined({ transfer: noted }),
      }),
      missingVolumes: [],
      image: READY,
      hypervisor: 'simulated',
    }
    return planInstance(
      { apiVersion: '', kind: 'Instance', spec, metadata: { name: 'i', uid: 'uid-1', generation: 1 } },
      observed,
      NOW,
    )
  }

  const notedBy = (actions: readonly Action[]): Transfer | undefined =>
    actions.flatMap((action) =>
      action.do === 'effect' && action.name === 'noteTransfer'
        ? [(action.input as { transfer: Transfer }).transfer]
        : [],
    )[0] // as the plan writes it

  it('notes the end of a transfer once', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const noted = notedBy(planOf(world))
        if (noted !== undefined) expect(notedBy(planOf({ ...world, noted }))).toBe(undefined)
      }),
      { numRuns: 5_000 },
    )
  })

  it('starts nothing twice, for any request, record and observation', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const { wanted, power, here, known, receiveOrder, sendOrder, noted } = world
        const actions = planOf(world)
        const effects = actions.flatMap((action) => (action.do === 'effect' ? [action.name] : []))
        // The next life begins when nothing is left of the one before.
        if (effects.includes('start') || effects.includes('receive'))
          expect([here, wanted > known, power, effects.length]).toEqual([undefined, true, 'running', 1])
        expect(effects.includes('start') && receiveOrder !== undefined).toBe(false)
        expect(effects.includes('start') && sendOrder !== undefined && known === 0).toBe(false)
        if (effects.includes('receive'))
          expect(
            noted?.role === 'receive' && noted.id === receiveOrder?.id && noted.attempt >= receiveOrder.attempt,
          ).toBe(false)
        if (effects.includes('send')) expect(here?.state).toBe('running')
        // What runs is only what the host runs.
        for (const action of actions)
          if (action.do === 'status' && ['running', 'stopping'].includes((action.status as { state: string }).state))
            expect(here?.state).toBe('running') // as the plan writes it
      }),
      { numRuns: 5_000 },
    )
  })
})
