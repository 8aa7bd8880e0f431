import { describe, expect, it } from 'vitest'
import {
  downtimeLimitAt,
  observeSend,
  type Move,
  nextSendStep,
  type ObservedSend,
  type SendStep,
  transferOf,
} from '../../../agents/node/drivers/hypervisor/qemu-migration.ts'
import { defined } from '../../../domain/defined.ts'

const move = (over: Partial<Move> = {}): Move => ({
  role: 'send',
  id: 'op',
  attempt: 1,
  mirroredDisks: [],
  beganAt: '2030-01-01T00:00:00.000Z',
  host: 'h',
  port: 1,
  isStarted: true,
  orders: { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 60 },
  ...over,
})
const copied = { mirroredDisks: [0, 1] }
const copy = (number: number, status: string, error?: string) => ({
  id: `copy-job${number}`,
  status,
  ...defined({ error }),
})
const both = (status: string) => [copy(0, status), copy(1, status)]

interface Row {
  readonly why: string
  readonly move?: Partial<Move>
  readonly status?: string
  readonly copies?: ObservedSend['copies']
  readonly reason?: string
  readonly step: SendStep | SendStep['do']
}

const rows: readonly Row[] = [
  {
    why: 'the memory is sent once all disks are copied',
    move: { ...copied, isStarted: false },
    copies: both('ready'),
    step: 'sendMemory',
  },
  {
    why: 'and not before',
    move: { ...copied, isStarted: false },
    copies: [copy(0, 'ready'), copy(1, 'running')],
    step: 'wait',
  },
  {
    why: 'a copy that broke ends the attempt',
    move: { ...copied, isStarted: false },
    copies: [copy(0, 'ready'), copy(1, 'concluded', 'No space left')],
    step: { do: 'end', phase: 'failed', detail: 'copy of a disk: No space left' },
  },
  {
    why: 'a copy that an agent had no time to begin ends it too',
    move: { ...copied, isStarted: false },
    copies: [copy(0, 'ready')],
    step: { do: 'end', phase: 'failed', detail: 'the copy of a disk was interrupted' },
  },
  {
    why: 'it is given up before the memory is sent',
    move: { ...copied, isStarted: false },
    copies: both('running'),
    reason: 'cancelled',
    step: { do: 'end', phase: 'failed', detail: 'cancelled' },
  },
  { why: 'it is given up while the memory is sent', status: 'active', reason: 'cancelled', step: 'cancel' },
  {
    why: 'a copy that breaks while the memory is sent stops it',
    move: copied,
    copies: [copy(0, 'ready'), copy(1, 'concluded', 'broken')],
    status: 'active',
    step: 'cancel',
  },
  {
    why: 'once QEMU waits for the hand-over it is not given up',
    status: 'pre-switchover',
    reason: 'cancelled',
    step: 'handOver',
  },
  { why: 'nor while it hands over', status: 'device', reason: 'not done in time', step: 'wait' },
  {
    why: 'disks are whole before the guest is handed over',
    move: copied,
    copies: both('ready'),
    status: 'pre-switchover',
    step: 'finishCopies',
  },
  {
    why: 'and it is waited for that',
    move: copied,
    copies: [copy(0, 'concluded'), copy(1, 'aborting')],
    status: 'pre-switchover',
    step: 'wait',
  },
  { why: 'then it is', move: copied, copies: both('concluded'), status: 'pre-switchover', step: 'handOver' },
  {
    why: 'a guest without its disk is never handed over',
    move: copied,
    copies: [copy(0, 'concluded'), copy(1, 'concluded', 'broken')],
    status: 'pre-switchover',
    step: 'cancel',
  },
  { why: 'the end', status: 'completed', step: { do: 'end', phase: 'completed', detail: '' } },
  {
    why: 'the end for who would give it up too late',
    status: 'completed',
    reason: 'cancelled',
    step: { do: 'end', phase: 'completed', detail: '' },
  },
  {
    why: 'a cancelled one says why',
    status: 'cancelled',
    reason: 'not done in time',
    step: { do: 'end', phase: 'failed', detail: 'not done in time' },
  },
  { why: 'a cancel takes its time', status: 'cancelling', step: 'wait' },
  {
    why: 'a stream that broke',
    status: 'failed',
    step: { do: 'end', phase: 'failed', detail: 'the stream to the receiver broke' },
  },
  {
    why: 'an agent was killed before it told QEMU to send',
    step: { do: 'end', phase: 'failed', detail: 'the sending was interrupted before it began' },
  },
  { why: 'connecting', status: 'setup', step: 'wait' },
  { why: 'it is given up while it connects', status: 'setup', reason: 'not done in time', step: 'cancel' },
]

describe('the next step of a sender', () => {
  it.each(rows)('$why', ({ move: over, status, copies = [], reason, step }) => {
    const found = nextSendStep(move(over), { migration: status === undefined ? {} : { status }, copies }, reason)
    if (typeof step === 'string') expect(found.do).toBe(step)
    else expect(found).toEqual(step)
  })

  it('allows more downtime with each pass, never more than the limit', () => {
    expect([0, 1, 2, 3, 4, 5, 9].map((pass) => downtimeLimitAt(pass, 2_000))).toEqual([
      63, 125, 250, 500, 1_000, 2_000, 2_000,
    ])
    expect([1, 4, 5].map((pass) => downtimeLimitAt(pass, 300))).toEqual([50, 150, 300])
    expect(downtimeLimitAt(1, 20)).toBe(20)
    const ram = { transferred: 5, total: 9, 'dirty-pages-rate': 3, 'page-size': 4_096, 'dirty-sync-count': 4 }
    expect(nextSendStep(move(), { migration: { status: 'active', ram }, copies: [] }, undefined)).toEqual({
      do: 'allowDowntime',
      milliseconds: 1_000,
    })
    expect(transferOf(move(), new Date(0), { ram, downtime: 12 })).toMatchObject({
      iteration: 4,
      transferredBytes: 5,
      totalBytes: 9,
      dirtyBytesPerSecond: 12_288,
      downtimeMilliseconds: 12,
    })
  })
})

describe('what QEMU says of a sending', () => {
  it.each([
    ['is over once the guest stands still for good', 'postmigrate', 'completed'],
    ['is not over before QEMU has reckoned how long it stood still', 'finish-migrate', 'device'],
    ['is of the way on which a guest came that goes on', 'running', 'none'],
    ['is of the way on which a guest came that has powered itself off', 'shutdown', 'none'],
  ])('%s', async (_what, status, expected) => {
    const answers: Readonly<Record<string, object>> = {
      'query-migrate': { status: 'completed' },
      'query-status': { status },
    }
    const sight = await observeSend({ execute: (command) => Promise.resolve(answers[command]), close() {} }, move())
    expect(sight.migration.status).toBe(expected)
  })
})
