/** The table of migration states (supplement to the interface specification, section 7.3), a row at a time, and what
 *  surrounds it. */
import { describe, expect, test } from 'vitest'
import type { ServerStatus } from '../../../../../resources/server/index.ts'
import { plan } from '../../../../../controllers/nouns/server/plan.ts'
import { disk, type Move, moved, moving, receive, send, stray, TARGET, there, transfer, written } from './worlds.ts'
import { after, instance, NOW, storage } from '../worlds.ts'

const waiting = (attempt = 1) =>
  there(receive(attempt), {
    state: 'receiving',
    incarnation: 0,
    transfer: transfer('receive', 'transferring', { attempt }),
  })
const failedToReceive = (attempt = 1) =>
  there(receive(attempt), { state: 'stopped', incarnation: 0, transfer: transfer('receive', 'failed', { attempt }) })
const arrived = () => there(receive(), { transfer: transfer('receive', 'completed') })
const sendingNow = (attempt = 1) => instance(send(attempt), { transfer: transfer('send', 'transferring', { attempt }) })
const keptOn = (attempt = 1) =>
  instance(send(attempt), { transfer: transfer('send', 'failed', { attempt, detail: 'too slow' }) })
const handedOver = (downtimeMilliseconds = 40) =>
  instance(send(), { state: 'handed_over', transfer: transfer('send', 'completed', { downtimeMilliseconds }) })
const off = instance({ power: 'stopped', incarnation: 1 }, { state: 'stopped' })
const stoppedForMove = instance(
  { power: 'stopped', incarnation: 1, stop: { id: 'op-1', type: 'soft', timeoutSeconds: 60, timeoutAction: 'hard' } },
  { state: 'stopped' },
)
const mirror = disk('ready', 'mirror')
const leftBefore = { ...mirror, spec: { ...mirror.spec, source: { kind: 'mirror', name: 'op-0' } } } as const
const leaving = { ...mirror, metadata: { ...mirror.metadata, deletionTimestamp: NOW.toISOString() } }
const { source: _source, ...sharedSpec } = mirror.spec
const shared = (arrivingFor: string) => ({
  ...mirror,
  spec: { ...sharedSpec, pool: 'pool-1', isRetained: true, arrivingFor },
})
const pooled = { ...storage('online'), status: { state: 'online', pool: 'pool-1' } } as const
const CANCEL = { cancel: 'true' }

type Row = readonly [row: string, world: Move, expected: readonly string[]]

describe('migration states', () => {
  test.each<Row>([
    [
      '(none): target chosen: room is asked for',
      moving({ held: undefined }),
      ['effect reserve', 'operation op-1 reserved', 'state started'],
    ],
    [
      '(none): target chosen: reserved, written down before anything is done',
      moving({}),
      ['operation op-1 reserved', 'state started', 'event target_chosen', 'reserved'],
    ],
    [
      'reserved: live transfer, server started: preparing',
      moving({ migration: written('reserved') }),
      [
        'effect shareKeys',
        'ensure Instance running 1 on node-node-2 receives 1',
        'operation op-1 prepared',
        'state started',
        'preparing',
      ],
    ],
    [
      'reserved: cold move, server stopped: detached',
      moving({ kind: 'server.move', power: 'stopped', source: off, migration: written('reserved') }),
      ['effect shareKeys', 'operation op-1 prepared', 'state stopped', 'detached'],
    ],
    [
      'reserved: cold move, stopped for the move: detached',
      moving({ args: { mode: 'cold' }, migration: written('reserved') }),
      [
        'ensure Instance stopped 1 soft 60s hard on node-node-1',
        'operation op-1 prepared',
        'state stopping',
        'detached',
      ],
    ],
    [
      'preparing: the target listens, source connects: sending',
      moving({ migration: written('preparing'), target: waiting() }),
      [
        'ensure Instance running 1 on node-node-1 sends 1',
        'operation op-1 moved',
        'state started',
        'event send_started',
        'sending',
      ],
    ],
    [
      'sending: goes on',
      moving({ migration: written('sending'), source: sendingNow(), target: waiting() }),
      ['operation op-1 moved', 'state started', 'sending'],
    ],
    [
      'sending: pass ends without convergence, attempts left: sending, attempt + 1',
      moving({ migration: written('sending'), source: keptOn(), target: waiting() }),
      [
        'effect shareKeys',
        'ensure Instance running 1 on node-node-2 receives 2',
        'operation op-1 moved',
        'state started',
        'sending: too slow',
      ],
    ],
    [
      'sending: attempt 2 is throttled under default',
      moving({ migration: written('sending', { attempt: 2 }), source: keptOn(), target: waiting(2) }),
      [
        'ensure Instance running 1 on node-node-1 sends 2 throttled',
        'operation op-1 moved',
        'state started',
        'event send_started',
        'sending',
      ],
    ],
    [
      'sending: attempt 2 is never throttled under strict',
      moving({ policy: 'strict', migration: written('sending', { attempt: 2 }), source: keptOn(), target: waiting(2) }),
      [
        'ensure Instance running 1 on node-node-1 sends 2',
        'operation op-1 moved',
        'state started',
        'event send_started',
        'sending',
      ],
    ],
    [
      'sending: guest paused and resumed on the target: switched',
      moving({ migration: written('sending'), source: handedOver(), target: arrived() }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'sending: downtime within policy, to the millisecond',
      moving({ policy: 'strict', migration: written('sending'), source: handedOver(300), target: arrived() }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'sending: downtime beyond policy: switched as well, and that is said',
      moving({ policy: 'strict', migration: written('sending'), source: handedOver(301), target: arrived() }),
      [
        'effect switch',
        'operation op-1 cleaned',
        'state started',
        'event handed_over',
        'event downtime_exceeded',
        'switched',
      ],
    ],
    [
      'detached: the disk is copied first',
      moving({
        kind: 'server.move',
        power: 'stopped',
        source: off,
        migration: written('detached'),
        observed: { targetVolume: disk('creating') },
      }),
      ['effect shareKeys', 'operation op-1 prepared', 'state stopped', 'detached'],
    ],
    [
      'detached: never made there before it is gone here',
      moving({
        kind: 'server.move',
        power: 'stopped',
        source: off,
        migration: written('detached'),
        observed: { targetVolume: disk('ready') },
      }),
      ['remove Instance on node-node-1', 'operation op-1 prepared', 'state stopped', 'detached'],
    ],
    [
      'detached: then made on the target',
      moving({
        args: { mode: 'cold' },
        source: undefined,
        migration: written('detached'),
        observed: { targetVolume: disk('ready') },
      }),
      ['ensure Instance running 2 on node-node-2', 'operation op-1 moved', 'state starting', 'detached'],
    ],
    [
      'detached: started on the target: switched',
      moving({
        args: { mode: 'cold' },
        source: undefined,
        target: there({ incarnation: 2 }, { incarnation: 2 }, 'op-1'),
        migration: written('detached'),
        observed: { targetVolume: disk('ready') },
      }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'detached: taken over by the target, stopped: switched',
      moving({
        kind: 'server.move',
        power: 'stopped',
        source: undefined,
        target: there({ power: 'stopped' }, { state: 'stopped', incarnation: 0 }, 'op-1'),
        migration: written('detached'),
        observed: { targetVolume: disk('ready') },
      }),
      ['effect switch', 'operation op-1 cleaned', 'state stopped', 'event handed_over', 'switched'],
    ],
    [
      'sending: attempts used up: aborting',
      moving({ migration: written('sending', { attempt: 3 }), source: keptOn(3), target: waiting(3) }),
      [
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: The guest could not be sent in 3 attempts: too slow',
      ],
    ],
    [
      'sending: attempts used up under strict: aborting',
      moving({
        policy: 'strict',
        migration: written('sending', { attempt: 2 }),
        source: keptOn(2),
        target: waiting(2),
      }),
      [
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: The guest could not be sent in 2 attempts: too slow',
      ],
    ],
    [
      'sending: timeout: aborting',
      moving({ now: after(3_500), migration: written('sending'), source: sendingNow(), target: waiting() }),
      [
        'ensure Instance running 1 on node-node-1 sends 1 cancelled',
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: It was not done in time.',
      ],
    ],
    [
      'sending: cancel: aborting',
      moving({ args: CANCEL, migration: written('sending'), source: sendingNow(), target: waiting() }),
      [
        'ensure Instance running 1 on node-node-1 sends 1 cancelled',
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: It was cancelled.',
      ],
    ],
    [
      'preparing: cancel: aborting',
      moving({ args: CANCEL, migration: written('preparing'), target: waiting() }),
      ['operation op-1 reserved', 'state started', 'event undoing', 'aborting: It was cancelled.'],
    ],
    [
      'sending: target lost: aborting',
      moving({
        migration: written('sending'),
        source: sendingNow(),
        target: waiting(),
        observed: { unreachableNodes: [TARGET] },
      }),
      [
        'ensure Instance running 1 on node-node-1 sends 1 cancelled',
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: Node node-2 does not answer.',
      ],
    ],
    [
      'aborting: nothing is undone before the source is confirmed running',
      moving({
        args: CANCEL,
        migration: written('aborting', { detail: 'It was cancelled.' }),
        source: instance(send(1, true), { transfer: transfer('send', 'transferring') }),
        target: waiting(),
      }),
      ['operation op-1 reserved', 'state started', 'event undoing', 'aborting: It was cancelled.'],
    ],
    [
      'aborting: source confirmed running: the target is cleaned',
      moving({
        args: CANCEL,
        migration: written('aborting', { detail: 'It was cancelled.' }),
        source: keptOn(),
        target: waiting(),
      }),
      [
        'remove Instance on node-node-2',
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: It was cancelled.',
      ],
    ],
    [
      'aborting: cleaned, cold allowed by relaxed: detached',
      moving({
        policy: 'relaxed',
        migration: written('aborting', { attempt: 5, detail: 'too slow' }),
        source: keptOn(5),
      }),
      ['operation op-1 prepared', 'state started', 'event cold_fallback', 'detached: too slow'],
    ],
    [
      'aborting: cleaned, cold allowed by who asked: detached',
      moving({
        args: { mode: 'live_then_cold' },
        migration: written('aborting', { attempt: 3, detail: 'too slow' }),
        source: keptOn(3),
      }),
      ['operation op-1 prepared', 'state started', 'event cold_fallback', 'detached: too slow'],
    ],
    [
      'aborting: cleaned, otherwise: (end: failed)',
      moving({ migration: written('aborting', { attempt: 3, detail: 'too slow' }), source: keptOn(3) }),
      [
        'ensure Instance running 1 on node-node-1',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'effect release',
        'operation op-1 reserved failed: too slow',
        'state started',
        'event undoing',
        'aborting: too slow',
      ],
    ],
    [
      'aborting: cleaned, cancelled: (end: cancelled), also where cold is allowed',
      moving({
        policy: 'relaxed',
        args: CANCEL,
        migration: written('aborting', { detail: 'It was cancelled.' }),
        source: keptOn(),
      }),
      [
        'ensure Instance running 1 on node-node-1',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'effect release',
        'operation op-1 reserved cancelled',
        'state started',
        'event undoing',
        'event move_cancelled',
        'aborting: It was cancelled.',
      ],
    ],
    [
      'detached: target fails before the guest ran: the target is cleaned',
      moving({
        args: { mode: 'cold' },
        source: undefined,
        target: there({ incarnation: 2 }, { state: 'error', detail: 'No such image.' }, 'op-1'),
        migration: written('detached'),
        observed: { targetVolume: disk('ready') },
      }),
      ['operation op-1 reserved', 'state started', 'event undoing', 'aborting: No such image.'],
    ],
    [
      'detached: target fails before the guest ran: started again on the source',
      moving({
        args: { mode: 'cold' },
        source: undefined,
        migration: written('aborting', { detail: 'No such image.' }),
      }),
      [
        'ensure Instance running 2 on node-node-1',
        'operation op-1 reserved',
        'state starting',
        'event undoing',
        'aborting: No such image.',
      ],
    ],
    [
      'detached: started again on the source: (end: failed)',
      moving({
        args: { mode: 'cold' },
        source: instance({ incarnation: 2 }, undefined, 'op-1'),
        migration: written('aborting', { detail: 'No such image.' }),
      }),
      [
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'effect release',
        'operation op-1 reserved failed: No such image.',
        'state started',
        'event undoing',
        'aborting: No such image.',
      ],
    ],
    [
      'switched: source is cleaned',
      moving({
        held: undefined,
        isSwitched: true,
        migration: written('switched'),
        source: arrived(),
        observed: { strayInstances: [stray()] },
      }),
      ['remove Instance on node-node-1', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'switched: source cleaned: (end: succeeded)',
      moving({ held: undefined, isSwitched: true, migration: written('switched'), source: arrived() }),
      [
        'ensure Instance running 1 on node-node-2',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'operation op-1 cleaned succeeded',
        'state started',
        'event handed_over',
        'switched',
      ],
    ],
    [
      'switched: downtime beyond policy is said again, for an operation that was not told',
      moving({
        held: undefined,
        isSwitched: true,
        migration: written('switched', { downtimeMilliseconds: 2_001 }),
        source: arrived(),
      }),
      [
        'ensure Instance running 1 on node-node-2',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'operation op-1 cleaned succeeded',
        'state started',
        'event handed_over',
        'event downtime_exceeded',
        'switched',
      ],
    ],
    [
      'switched: it ends well also at the deadline',
      moving({ now: after(4_000), migration: written('sending'), source: handedOver(), target: arrived() }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'switched: what its source takes too long for is left to a server at rest',
      moving({
        now: after(4_000),
        held: undefined,
        isSwitched: true,
        migration: written('switched'),
        source: arrived(),
        observed: { strayInstances: [stray()] },
      }),
      [
        'remove Instance on node-node-1',
        'ensure Instance running 1 on node-node-2',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'operation op-1 cleaned succeeded',
        'state started',
        'event handed_over',
        'switched',
      ],
    ],
    [
      'switched: a source that is silent is cleaned when it is back',
      moving({
        held: undefined,
        isSwitched: true,
        migration: written('switched'),
        source: arrived(),
        observed: { strayInstances: [stray()], unreachableNodes: ['node-1'] },
      }),
      [
        'remove Instance on node-node-1',
        'ensure Instance running 1 on node-node-2',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'operation op-1 cleaned succeeded',
        'state started',
        'event handed_over',
        'switched',
      ],
    ],
  ])('%s', (_row, world, expected) => expect(moved(world)).toEqual(expected))
})

describe('after anything was killed, both nodes are asked', () => {
  const left = { kind: 'server.settle_migration', held: 'op-0' } as const
  const of = <Spec extends object>(object: { readonly spec: Spec }) =>
    // the same, of the earlier operation
    JSON.parse(JSON.stringify(object).replaceAll('"op-1"', '"op-0"')) as typeof object
  const before = (state: Parameters<typeof written>[0], detail = '') => written(state, { operationId: 'op-0', detail })
  test.each<Row>([
    [
      'guest runs on target: switched',
      moving({
        ...left,
        migration: before('sending'),
        source: of(handedOver()) as never,
        target: of(arrived()) as never,
      }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'only on source: aborting',
      moving({ ...left, migration: before('sending'), source: of(keptOn()) as never, target: of(waiting()) as never }),
      ['operation op-1 reserved', 'state started', 'event undoing', 'aborting: The move was left in the middle.'],
    ],
    [
      'only on source: the end is that it was settled',
      moving({ ...left, migration: before('aborting', 'too slow'), source: of(keptOn()) as never }),
      [
        'ensure Instance running 1 on node-node-1',
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'effect release',
        'operation op-1 reserved succeeded',
        'state started',
        'event undoing',
        'aborting: too slow',
      ],
    ],
    [
      'on neither: nothing is started while the target may still have it',
      moving({
        ...left,
        migration: before('sending'),
        source: of(handedOver()) as never,
        target: of(waiting()) as never,
      }),
      ['operation op-1 moved', 'state started', 'sending'],
    ],
    [
      'on neither: the target is cleaned first',
      moving({
        ...left,
        migration: before('aborting', 'lost'),
        source: of(handedOver()) as never,
        target: of(failedToReceive()) as never,
      }),
      ['remove Instance on node-node-2', 'operation op-1 reserved', 'state started', 'event undoing', 'aborting: lost'],
    ],
    [
      'on neither: started again where its disks are',
      moving({ ...left, migration: before('aborting', 'lost'), source: of(handedOver()) as never }),
      [
        'ensure Instance running 2 on node-node-1',
        'operation op-1 reserved',
        'state starting',
        'event undoing',
        'aborting: lost',
      ],
    ],
    [
      'on both: the source is ended, because the server lives on the target',
      moving({
        ...left,
        migration: before('sending'),
        source: of(sendingNow()) as never,
        target: of(arrived()) as never,
      }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
  ])('%s', (_row, world, expected) => expect(moved(world)).toEqual(expected))

  test.each<Row>([
    [
      'target, but it is on the source',
      moving({
        ...left,
        args: { winner: 'target' },
        migration: before('aborting', 'too slow'),
        source: of(keptOn()) as never,
      }),
      ['operation op-1 reserved failed: The guest is on the source of the move, and the server with it.'],
    ],
    [
      'source, but it is on the target',
      moving({
        ...left,
        args: { winner: 'source' },
        held: undefined,
        isSwitched: true,
        migration: before('switched'),
        source: of(arrived()) as never,
      }),
      ['operation op-1 cleaned failed: The guest is on the target of the move, and the server with it.'],
    ],
    [
      'target, where it is',
      moving({
        ...left,
        args: { winner: 'target' },
        held: undefined,
        isSwitched: true,
        migration: before('switched'),
        source: of(arrived()) as never,
      }),
      ['operation op-1 cleaned succeeded'],
    ],
    [
      'the source, and it runs nowhere',
      moving({
        ...left,
        args: { winner: 'source' },
        power: 'stopped',
        migration: before('aborting', 'x'),
        source: off,
      }),
      ['operation op-1 reserved succeeded'],
    ],
  ])('the host that an operator names as the winner has the guest: %s', (_row, world, expected) =>
    expect(moved(world).filter((line) => line.startsWith('operation'))).toEqual(expected),
  )

  const there0 = (state: Parameters<typeof disk>[0]) => of(disk(state)) as ReturnType<typeof disk>
  const toTarget = (scene: Parameters<typeof moving>[0]) =>
    moving({ ...left, args: { winner: 'target' }, power: 'stopped', source: off, ...scene })
  test.each<Row>([
    [
      'the move goes on, also when it was being undone',
      toTarget({ migration: before('aborting', 'x') }),
      ['operation op-1 prepared', 'state stopped', 'detached'],
    ],
    [
      'disks first',
      toTarget({ migration: before('detached'), observed: { targetVolume: there0('creating') } }),
      ['effect shareKeys', 'operation op-1 prepared', 'state stopped', 'detached'],
    ],
    [
      'then the server',
      toTarget({ migration: before('detached'), observed: { targetVolume: there0('ready') } }),
      ['remove Instance on node-node-1', 'operation op-1 prepared', 'state stopped', 'detached'],
    ],
    [
      'until it is there',
      toTarget({
        migration: before('detached'),
        source: undefined,
        target: there({ power: 'stopped' }, { state: 'stopped', incarnation: 0 }, 'op-1'),
        observed: { targetVolume: there0('ready') },
      }),
      ['effect switch', 'operation op-1 cleaned', 'state stopped', 'event handed_over', 'switched'],
    ],
    [
      'it is undone where it cannot go on',
      toTarget({ migration: before('detached'), observed: { targetVolume: there0('error') } }),
      ['operation op-1 reserved', 'state stopped', 'event undoing', 'aborting: The move was left in the middle.'],
    ],
    [
      'and not where the node is silent',
      toTarget({ migration: before('aborting', 'x'), observed: { unreachableNodes: [TARGET] } }),
      [
        'remove Secret on node-node-1',
        'remove Secret on node-node-2',
        'effect release',
        'operation op-1 reserved failed: The guest is on the source of the move, and the server with it.',
        'state stopped',
        'event undoing',
        'aborting: x',
      ],
    ],
  ])('the target is named for a server that runs nowhere: %s', (_row, world, expected) =>
    expect(moved(world)).toEqual(expected),
  )

  test('nothing else begins before that', () => {
    const world = moving({
      kind: 'server.restart',
      held: 'op-0',
      migration: before('sending'),
      source: of(handedOver()) as never,
      target: of(arrived()) as never,
    })
    expect(moved(world)).toEqual(['effect switch', 'operation op-1 done', 'state started', 'switched'])
  })
})

describe('whoever is not heard', () => {
  test.each<Row>([
    [
      'a sender that is silent is waited for, never given up',
      moving({
        args: CANCEL,
        migration: written('aborting', { detail: 'x' }),
        source: sendingNow(),
        target: waiting(),
        observed: { isHostReachable: false, unreachableNodes: ['node-1'] },
      }),
      [
        'ensure Instance running 1 on node-node-1 sends 1 cancelled',
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: x',
      ],
    ],
    [
      'what was sent and has not arrived is asked for: the receiver is told of another attempt',
      moving({ now: after(60), migration: written('sending'), source: handedOver(), target: waiting() }),
      ['ensure Instance running 1 on node-node-2 receives 2', 'operation op-1 moved', 'state started', 'sending'],
    ],
    [
      'and its word is waited for, however long it takes',
      moving({
        now: after(600),
        migration: written('sending'),
        source: handedOver(),
        target: there(receive(2), {
          state: 'receiving',
          incarnation: 0,
          transfer: transfer('receive', 'transferring'),
        }),
      }),
      ['operation op-1 moved', 'state started', 'sending'],
    ],
    [
      'a cancel that comes too late changes nothing',
      moving({
        args: CANCEL,
        migration: written('aborting', { detail: 'It was cancelled.' }),
        source: handedOver(),
        target: waiting(),
      }),
      ['operation op-1 reserved', 'state started', 'aborting'],
    ],
    [
      'a guest that arrives although its move was to be undone has arrived',
      moving({
        args: CANCEL,
        migration: written('aborting', { detail: 'It was cancelled.' }),
        source: handedOver(),
        target: arrived(),
      }),
      ['effect switch', 'operation op-1 cleaned', 'state started', 'event handed_over', 'switched'],
    ],
    [
      'one that waits for the next attempt has not got this one',
      moving({ migration: written('sending'), source: handedOver(), target: waiting(2) }),
      [
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: The guest was lost when it was handed over.',
      ],
    ],
    [
      'a target that was proven dead is not waited for',
      moving({
        migration: written('aborting', { detail: 'lost' }),
        source: handedOver(),
        target: waiting(),
        observed: { unreachableNodes: [TARGET], fencedNodes: [TARGET] },
      }),
      [
        'ensure Instance running 2 on node-node-1',
        'operation op-1 reserved',
        'state starting',
        'event undoing',
        'aborting: lost',
      ],
    ],
    [
      'an instance of an earlier move is in the way',
      moving({ migration: written('preparing'), target: there({}, {}) }),
      ['remove Instance on node-node-2', 'operation op-1 prepared', 'state started', 'preparing'],
    ],
    [
      'a receiver waits for the disk of its move',
      moving({ migration: written('reserved'), observed: { targetVolume: undefined } }),
      ['operation op-1 prepared', 'state started', 'preparing'],
    ],
    [
      'a receiver never gets the disk that an earlier move left',
      moving({ migration: written('preparing'), observed: { targetVolume: leftBefore } }),
      ['operation op-1 prepared', 'state started', 'preparing'],
    ],
    [
      'a receiver never gets a disk that is on its way out',
      moving({ migration: written('preparing'), observed: { targetVolume: leaving } }),
      ['operation op-1 prepared', 'state started', 'preparing'],
    ],
    [
      'a receiver lets go of a disk that is not of its move',
      moving({ migration: written('preparing'), target: failedToReceive(), observed: { targetVolume: leftBefore } }),
      ['remove Instance on node-node-2', 'operation op-1 prepared', 'state started', 'preparing'],
    ],
    [
      'a receiver gets a shared disk as it is',
      moving({ migration: written('preparing'), observed: { storage: pooled, targetVolume: shared('op-1') } }),
      [
        'effect shareKeys',
        'ensure Instance running 1 on node-node-2 receives 1',
        'operation op-1 prepared',
        'state started',
        'preparing',
      ],
    ],
    [
      'but never what another move had it for, which may be on its way out',
      moving({ migration: written('preparing'), observed: { storage: pooled, targetVolume: shared('op-0') } }),
      ['operation op-1 prepared', 'state started', 'preparing'],
    ],
    [
      'a receiver that fails before anything was sent is made anew',
      moving({ migration: written('preparing'), target: failedToReceive() }),
      [
        'effect shareKeys',
        'ensure Instance running 1 on node-node-2 receives 2',
        'operation op-1 prepared',
        'state started',
        'preparing',
      ],
    ],
    [
      "a receiver that fails while it is sent to waits for its sender's word",
      moving({ migration: written('sending'), source: sendingNow(), target: failedToReceive() }),
      ['operation op-1 moved', 'state started', 'sending'],
    ],
    [
      'a guest that ends by itself is not moved',
      moving({
        migration: written('preparing'),
        source: instance({}, { state: 'stopped', endReason: 'guest_shutdown' }),
        target: waiting(),
      }),
      [
        'operation op-1 reserved',
        'state started',
        'event undoing',
        'aborting: The guest ended while it was to be moved.',
      ],
    ],
    [
      'a guest whose node is proven dead is not moved, and that is said',
      moving({
        migration: written('sending'),
        source: sendingNow(),
        target: waiting(),
        observed: { unreachableNodes: ['node-1'], fencedNodes: ['node-1'] },
      }),
      ['operation op-1 reserved', 'state started', 'event undoing', 'aborting: Node node-1 was lost.'],
    ],
    [
      'a guest that was stopped for the move and cannot go is started again',
      moving({ policy: 'relaxed', migration: written('aborting', { detail: 'Disk full.' }), source: stoppedForMove }),
      [
        'ensure Instance running 2 on node-node-1',
        'operation op-1 reserved',
        'state starting',
        'event undoing',
        'aborting: Disk full.',
      ],
    ],
    [
      'a disk that cannot be copied ends the move',
      moving({
        kind: 'server.move',
        power: 'stopped',
        source: off,
        migration: written('detached'),
        observed: { targetVolume: disk('error') },
      }),
      ['operation op-1 reserved', 'state stopped', 'event undoing', 'aborting: Disk full.'],
    ],
  ])('%s', (_row, world, expected) => expect(moved(world)).toEqual(expected))
})

test('a refused reservation ends the move in its words', () => {
  const world = moving({ held: undefined })
  const conditions = [
    {
      type: 'Reserved',
      status: 'False' as const,
      reason: 'NoCapacity',
      message: 'No room.',
      observedGeneration: 1,
      lastTransitionTime: NOW.toISOString(),
    },
  ]
  const status: ServerStatus = { ...world.server.status, state: 'started', conditions }
  expect(moved({ ...world, server: { ...world.server, status } })).toEqual([
    'operation op-1 reserved failed: No room.',
    'state started',
  ])
})

test('a pause that was too long is reported with both figures', () => {
  const world = moving({ migration: written('sending'), source: handedOver(2_417), target: arrived() })
  const events = plan(world.server, world.observed, world.now).flatMap((action) =>
    action.do === 'operation' ? (action.events ?? []) : [],
  )
  expect(events.find(({ kind }) => kind === 'downtime_exceeded')).toEqual({
    kind: 'downtime_exceeded',
    message: 'The guest stood still for 2417 ms, longer than the 2000 ms that the migration policy default allows.',
    data: { downtime_milliseconds: 2_417, downtime_limit_milliseconds: 2_000 },
  })
})

test('a move that was undone is not begun again', () => {
  expect(moved(moving({ held: undefined, migration: written('aborting', { detail: 'too slow' }) }))).toEqual([
    'operation op-1 reserved failed: too slow',
    'state started',
  ])
})

test('figures alone are written at most once a second', () => {
  const at = (milliseconds: number) => new Date(NOW.getTime() + milliseconds).toISOString()
  const figures = (reportedAt: string, transferredBytes: number) => {
    const source = instance(send(), { transfer: transfer('send', 'transferring', { reportedAt, transferredBytes }) })
    const migration = written('sending', {
      phase: 'transferring',
      iteration: 2,
      transferredBytes: 30,
      totalBytes: 100,
      dirtyBytesPerSecond: 5,
      reportedAt: NOW.toISOString(),
    })
    const world = moving({ migration, source, target: waiting() })
    const status = plan(world.server, world.observed, NOW).find((action) => action.do === 'status')
    return status?.do === 'status'
      ? (status.status['migration'] as { transferredBytes: number }).transferredBytes
      : undefined
  }
  expect([figures(at(500), 60), figures(at(1_000), 60)]).toEqual([30, 60])
})
