import { describe, expect, it } from 'vitest'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { Guest } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { planInstance, type InstanceObject, type InstanceSeen } from '../../../agents/node/instance/plan.ts'
import type { LedgerEntry } from '../../../agents/node/ledger.ts'
import type { InstanceSpec } from '../../../resources/instance.ts'
import { instanceSpec } from './instance-spec.ts'

const NOW = new Date('2030-01-01T00:01:00.000Z')
const secondsAgo = (seconds: number) => new Date(NOW.getTime() - seconds * 1000).toISOString()
const READY: InstanceSeen['image'] = { is: 'ready', image: { name: 'tiny-linux', version: '1', boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' } } }

const soft = { id: 'op-1', type: 'soft', timeoutSeconds: 60, timeoutAction: 'hard' } as const

interface Row {
  readonly why: string
  readonly spec?: Partial<InstanceSpec>
  readonly generation?: number
  readonly isDeleting?: boolean
  readonly guest?: Partial<Guest>
  readonly entry?: Partial<LedgerEntry>
  readonly missingVolumes?: readonly string[]
  readonly image?: InstanceSeen['image']
  readonly does: readonly string[]
}

const guest = (over: Partial<Guest>): Guest => ({ name: 'i', uid: 'uid-1', incarnation: 1, state: 'running', isResponsive: true, startedAt: secondsAgo(30), forwards: [], ...over })
const entry = (over: Partial<LedgerEntry>): LedgerEntry => ({ uid: 'uid-1', generation: 1, incarnation: 1, ...over })

/** An action in a few words. */
function words(action: Action): string {
  if (action.do === 'effect') return [action.name, ...Object.values(action.input)].join(' ')
  if (action.do === 'status') {
    const { state, endReason, stop } = action.status as { state: string; endReason?: string; stop?: { outcome: string } } // as the plan writes it
    return ['status', state, ...(endReason === undefined ? [] : [endReason]), ...(stop === undefined ? [] : [stop.outcome])].join(' ')
  }
  return action.do === 'wait' ? `wait ${action.seconds}` : action.do
}

const rows: readonly Row[] = [
  { why: 'a new Instance is written into the ledger before anything is done for it', does: ['accept 1 0', 'wait 0'] },
  { why: 'a wanted incarnation is started', entry: { incarnation: 0 }, does: ['start 1', 'wait 0'] },
  { why: 'nothing is started without its disks', entry: { incarnation: 0 }, missingVolumes: ['boot'], does: ['status waiting', 'wait 30'] },
  { why: 'a template that is not there is made', entry: { incarnation: 0 }, image: { is: 'absent' }, does: ['status waiting', 'prepare', 'wait 30'] },
  { why: 'a template that cannot be made is an error that says why', entry: { incarnation: 0 }, image: { is: 'unavailable', reason: 'no apt' }, does: ['status error', 'prepare', 'wait 30'] },
  { why: 'incarnation 0 was never asked to start', spec: { incarnation: 0 }, entry: { incarnation: 0 }, does: ['status stopped'] },
  { why: 'a running guest is left alone', guest: {}, entry: {}, does: ['status running'] },
  { why: 'an incarnation is started once: one that ended stays so', entry: { ended: { at: secondsAgo(1), reason: 'guest_shutdown' } }, does: ['status stopped guest_shutdown'] },
  { why: 'a higher incarnation is started after the end of the one before', spec: { incarnation: 2 }, entry: { ended: { at: secondsAgo(1), reason: 'crashed' } }, does: ['start 2', 'wait 0'] },
  { why: 'an older spec than the one acted on changes nothing', spec: { incarnation: 9 }, generation: 3, entry: { generation: 4 }, guest: {}, does: ['wait 60'] },
  { why: 'a newer spec is noted first', generation: 5, entry: { generation: 4 }, guest: {}, does: ['accept 5 1', 'wait 0'] },
  { why: 'the guest of an earlier Instance of this name goes', guest: { uid: 'uid-0' }, entry: {}, does: ['discard', 'wait 0'] },
  { why: 'an older incarnation than the ledger knows goes', guest: { incarnation: 1 }, entry: { incarnation: 2 }, spec: { incarnation: 2 }, does: ['discard', 'wait 0'] },
  { why: 'a lost ledger learns from the guest', guest: { incarnation: 3 }, spec: { incarnation: 3 }, does: ['accept 1 3', 'wait 0'] },
  { why: 'the ledger of an earlier Instance of this name does not count', entry: { uid: 'uid-0', generation: 9, incarnation: 9 }, does: ['accept 1 0', 'wait 0'] },

  { why: 'a soft stop begins by asking', spec: { power: 'stopped', stop: soft }, guest: {}, entry: {}, does: ['askToStop op-1', 'wait 0'] },
  { why: 'and goes on asking', spec: { power: 'stopped', stop: soft }, guest: {}, entry: { stop: { id: 'op-1', since: secondsAgo(10) } }, does: ['askToStop op-1', 'status stopping', 'wait 5'] },
  { why: 'but never beyond its timeout', spec: { power: 'stopped', stop: soft }, guest: {}, entry: { stop: { id: 'op-1', since: secondsAgo(58) } }, does: ['askToStop op-1', 'status stopping', 'wait 2'] },
  { why: 'after the timeout the guest is ended', spec: { power: 'stopped', stop: soft }, guest: {}, entry: { stop: { id: 'op-1', since: secondsAgo(60) } }, does: ['end requested op-1', 'wait 0'] },
  { why: 'or the stop is given up, as was asked', spec: { power: 'stopped', stop: { ...soft, timeoutAction: 'fail' } }, guest: {}, entry: { stop: { id: 'op-1', since: secondsAgo(60) } }, does: ['giveUpStop op-1', 'wait 0'] },
  { why: 'a stop that was given up leaves the guest running', spec: { power: 'stopped', stop: soft }, guest: {}, entry: { stop: { id: 'op-1', since: secondsAgo(99), outcome: 'timed_out' } }, does: ['status running timed_out'] },
  { why: 'another stop request starts anew', spec: { power: 'stopped', stop: { ...soft, id: 'op-2' } }, guest: {}, entry: { stop: { id: 'op-1', since: secondsAgo(99), outcome: 'timed_out' } }, does: ['askToStop op-2', 'wait 0'] },
  { why: 'a hard stop does not ask', spec: { power: 'stopped', stop: { ...soft, type: 'hard' } }, guest: {}, entry: {}, does: ['end requested op-1', 'wait 0'] },
  { why: 'a guest is stopped softly when nobody said how', spec: { power: 'stopped' }, guest: {}, entry: {}, does: ['askToStop incarnation-1', 'wait 0'] },
  { why: 'a restart ends the guest first', spec: { incarnation: 2, stop: soft }, guest: {}, entry: {}, does: ['askToStop op-1', 'wait 0'] },
  { why: 'a stop of what does not run is done', spec: { power: 'stopped', stop: soft }, entry: { ended: { at: secondsAgo(9), reason: 'crashed' } }, does: ['noteStopped op-1', 'wait 0'] },
  { why: 'and says so', spec: { power: 'stopped', stop: soft }, entry: { ended: { at: secondsAgo(9), reason: 'requested' }, stop: { id: 'op-1', since: secondsAgo(9), outcome: 'stopped' } }, does: ['status stopped requested stopped'] },

  { why: 'a guest that powered itself off did so', guest: { state: 'off' }, entry: {}, does: ['end guest_shutdown', 'wait 0'] },
  { why: 'a guest that powered off because it was asked was asked', spec: { power: 'stopped', stop: soft }, guest: { state: 'off' }, entry: { stop: { id: 'op-1', since: secondsAgo(1) } }, does: ['end requested op-1', 'wait 0'] },
  { why: 'a guest that powers off after its stop was given up did so itself', spec: { power: 'stopped', stop: soft }, guest: { state: 'off' }, entry: { stop: { id: 'op-1', since: secondsAgo(99), outcome: 'timed_out' } }, does: ['end guest_shutdown', 'wait 0'] },
  { why: 'a guest that vanished crashed', guest: { state: 'gone' }, entry: {}, does: ['end crashed', 'wait 0'] },
  { why: 'a start that was begun and left nothing crashed', entry: {}, does: ['end crashed', 'wait 0'] },
  { why: 'a start that failed is an error', entry: { ended: { at: secondsAgo(1), reason: 'crashed', detail: 'no memory' } }, does: ['status error crashed'] },
  { why: 'an Instance that goes takes everything with it, whatever state it is in', isDeleting: true, guest: {}, entry: {}, generation: 0, does: ['forget', 'finalized'] },
]

describe('the plan of an Instance', () => {
  it.each(rows)('$why', (row) => {
    const instance: InstanceObject = {
      apiVersion: 'svccloud.dev/v1alpha1', kind: 'Instance', spec: instanceSpec(row.spec),
      metadata: { name: 'i', namespace: 'node-a', uid: 'uid-1', generation: row.generation ?? 1, ...(row.isDeleting ? { deletionTimestamp: secondsAgo(1) } : {}) },
    }
    const seen: InstanceSeen = {
      guest: row.guest && guest(row.guest), entry: row.entry && entry(row.entry), missingVolumes: row.missingVolumes ?? [], image: row.image ?? READY, hypervisor: 'simulated',
    }
    expect(planInstance(instance, seen, NOW).map(words)).toEqual(row.does)
  })

  it('never starts an incarnation that the ledger knows, and never two guests, whatever it sees', () => {
    for (const incarnation of [0, 1, 2]) {
      for (const known of [0, 1, 2]) {
        for (const state of [undefined, 'running', 'off', 'gone'] as const) {
          const instance: InstanceObject = { apiVersion: '', kind: 'Instance', spec: instanceSpec({ incarnation }), metadata: { name: 'i', uid: 'uid-1', generation: 1 } }
          const seen: InstanceSeen = { guest: state && guest({ state, incarnation: known }), entry: entry({ incarnation: known }), missingVolumes: [], image: READY, hypervisor: 'simulated' }
          const started = planInstance(instance, seen, NOW).map(words).filter((word) => word.startsWith('start'))
          if (state !== undefined || incarnation <= known) expect(started).toEqual([])
        }
      }
    }
  })
})
