import { describe, expect, test } from 'vitest'
import { MOVES_PER_SERVER_MAXIMUM } from '../../../../controllers/nouns/node/drain.ts'
import { plan } from '../../../../controllers/nouns/node/plan.ts'
import type { TenantServer, Observed } from '../../../../controllers/nouns/node/observed.ts'
import type { Room } from '../../../../domain/node/placement.ts'
import { candidate, guest, node, NOW, operationOf, observed, stanza, statusOf, actionLines } from './worlds.ts'

const BEFORE = { isCordoned: false, isInMaintenance: false }
const running = {
  id: 'op',
  kind: 'node.drain',
  status: 'running',
  stepIndex: 2,
  stepCount: 3,
  error: '',
  actor: 'operator',
  createdAt: '',
  deadlineAt: '',
} as const
/** A node that is being drained; `step` once the draining has begun. */
const draining = (
  args: Readonly<Record<string, string>> = {},
  {
    step,
    spec = {},
    operation = {},
  }: { readonly step?: string; readonly spec?: object; readonly operation?: object } = {},
) =>
  node(
    { state: 'draining', ...BEFORE, ...(step === undefined ? {} : { operation: { ...running, step } }) },
    {
      isCordoned: true,
      isInMaintenance: true,
      operation: stanza('node.drain', { arguments: { ...args }, ...operation }),
      ...spec,
    },
  )
const world = (guests: readonly TenantServer[], changes: Partial<Observed> = {}): Observed =>
  observed({ mirror: candidate({ isSchedulable: false }), guests, instanceCount: guests.length, ...changes })
const moveFor = (turn: number) =>
  stanza('server.migrate', { id: 'move', arguments: { node_operation_id: 'op', node_operation_turn: String(turn) } })
const room: Room = { cores: 0, memoryMebibytes: 0, storageGibibytes: 0 }

describe('draining', () => {
  test.each<readonly [string, ReturnType<typeof draining>, Observed, readonly string[]]>([
    [
      'ready or cordoned: placement is told first',
      draining(),
      observed(),
      ['effect audit', 'effect mirror false', 'operation cordoned', 'state draining'],
    ],
    [
      'started servers migrate, stopped ones move',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'started'), guest('b', 'stopped')]),
      ['effect order server.migrate a', 'effect order server.move b', 'operation emptied', 'state draining'],
    ],
    [
      'only two at a time',
      draining({}, { step: 'emptied' }),
      world(['a', 'b', 'c'].map((id) => guest(id, 'started'))),
      ['effect order server.migrate a', 'effect order server.migrate b', 'operation emptied', 'state draining'],
    ],
    [
      'or as many as was said',
      draining({ max_parallel: '1' }, { step: 'emptied' }),
      world(['a', 'b'].map((id) => guest(id, 'started'))),
      ['effect order server.migrate a', 'operation emptied', 'state draining'],
    ],
    [
      'those under way count',
      draining({ max_parallel: '1' }, { step: 'emptied' }),
      world([guest('a', 'started', { operation: moveFor(1), progress: 'running' }), guest('b', 'started')]),
      ['operation emptied', 'state draining'],
    ],
    [
      'busy servers are waited for',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'starting', { operation: stanza('server.start', { id: 's' }), progress: 'running' })]),
      ['operation emptied', 'state draining'],
    ],
    [
      'a move that failed is tried again',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'started', { operation: moveFor(1), progress: 'failed' })]),
      ['effect order server.migrate a', 'operation emptied', 'state draining'],
    ],
    [
      'but not for ever',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'started', { operation: moveFor(MOVES_PER_SERVER_MAXIMUM), progress: 'failed' })]),
      ['change {"isInMaintenance":false}', 'operation failed', 'state draining'],
    ],
    [
      'while others leave, who cannot is left for last',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'started', { operation: moveFor(3), progress: 'failed' }), guest('b', 'started')]),
      ['effect order server.migrate b', 'operation emptied', 'state draining'],
    ],
    [
      'a server in error cannot leave',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'error')]),
      ['change {"isInMaintenance":false}', 'operation failed', 'state draining'],
    ],
    [
      'room that is held here for another is waited for',
      draining({}, { step: 'emptied' }),
      world([guest('a', 'started', { isArriving: true })]),
      ['operation emptied', 'state draining'],
    ],
    [
      'a guest that is cleaned up is waited for',
      draining({}, { step: 'emptied' }),
      world([], { instanceCount: 1 }),
      ['operation emptied', 'state draining'],
    ],
    [
      'empty: held so, and in maintenance from the next turn on',
      draining({}, { step: 'emptied' }),
      world([]),
      ['change {"isInMaintenance":true}', 'operation succeeded', 'state draining'],
    ],
    [
      'a node without servers is done at once',
      draining(),
      world([]),
      ['effect audit', 'change {"isInMaintenance":true}', 'operation succeeded', 'state draining'],
    ],
    [
      'the announced hour is waited for',
      draining({ notify_hours: '2' }),
      world([guest('a', 'started')]),
      ['effect audit', 'operation announced', 'state draining'],
    ],
    [
      'cancelled: cordoned as before',
      draining({ cancel: 'true' }),
      world([guest('a', 'started')]),
      ['effect audit', 'change {"isInMaintenance":false}', 'operation cancelled', 'state draining'],
    ],
    [
      'an edit that takes it back cancels it',
      draining({}, { spec: { isInMaintenance: false } }),
      world([guest('a', 'started')]),
      ['effect audit', 'change {"isInMaintenance":false}', 'operation cancelled', 'state draining'],
    ],
    [
      'at its deadline no further server is asked',
      draining({}, { step: 'emptied', operation: { deadlineAt: NOW.toISOString() } }),
      world([guest('a', 'started')]),
      ['change {"isInMaintenance":false}', 'operation failed', 'state draining'],
    ],
  ])('%s', (_why, object, what, expected) => expect(actionLines(plan(object, what, NOW))).toEqual(expected))

  test('fails before the first server leaves when not all of them would find room, and names those', () => {
    const full = [
      candidate({ isSchedulable: false }),
      candidate({ node: 'n2', total: { cores: 1, memoryMebibytes: 6_144, storageGibibytes: 100 }, used: room }),
    ]
    const actions = plan(draining(), world([guest('a', 'started'), guest('b', 'started')], { zoneNodes: full }), NOW)
    expect(operationOf(actions)).toMatchObject({ outcome: 'failed', error: 'The zone has no room for b.' })
    expect(actionLines(actions)).not.toContain('effect order server.migrate a')
  })
  test('continues when capacity becomes short after the first has left', () => {
    const full = [candidate({ isSchedulable: false })]
    expect(
      operationOf(plan(draining({}, { step: 'emptied' }), world([guest('a', 'started')], { zoneNodes: full }), NOW)),
    ).not.toHaveProperty('outcome')
  })
  test.each([
    ['live_only', 'live'],
    ['live_then_cold', 'live_then_cold'],
    [undefined, 'live'],
  ] as const)('in the mode %s asks for %s', (mode, requested) => {
    const [order] = plan(
      draining(mode === undefined ? {} : { mode }, { step: 'emptied' }),
      world([guest('a', 'started')]),
      NOW,
    )
    expect(order).toMatchObject({
      do: 'effect',
      name: 'order',
      input: {
        id: 'a',
        actor: 'system:nodes',
        arguments: { mode: requested, node_operation_id: 'op', node_operation_turn: '1' },
      },
    })
  })
  test('tells those whose servers are on the node when and why, until it has ended', () => {
    const args = { notify_hours: '2', reason: 'New memory' }
    expect(statusOf(plan(draining(args), world([guest('a', 'started')]), NOW))).toMatchObject({
      plannedWork: { operationId: 'op', plannedAt: '2026-01-01T13:00:00.000Z', reason: 'New memory', action: 'live' },
    })
    expect(statusOf(plan(draining({}, { step: 'emptied' }), world([]), NOW))).toMatchObject({
      plannedWork: undefined,
      isInMaintenance: true,
      isCordoned: true,
    })
  })
  test('names those who could not leave, and why', () => {
    const actions = plan(
      draining({}, { step: 'emptied' }),
      world([guest('a', 'started', { operation: moveFor(3), progress: 'failed' })]),
      NOW,
    )
    expect(operationOf(actions)).toMatchObject({ error: 'These servers could not leave: a (The target was lost.).' })
    expect(statusOf(actions)).toMatchObject({ isInMaintenance: false, isCordoned: true })
  })
})

describe('a drained node', () => {
  const drained = { isCordoned: true, isInMaintenance: true }
  test('is in maintenance', () =>
    expect(actionLines(plan(node({ state: 'draining', ...drained }, drained), world([]), NOW))).toEqual([
      'state maintenance',
    ]))
  test('is ready when it is uncordoned', () => {
    const object = node({ state: 'maintenance', ...drained }, { isCordoned: false, operation: stanza('node.uncordon') })
    expect(actionLines(plan(object, world([]), NOW))).toEqual([
      'effect audit',
      'effect mirror true',
      'operation succeeded',
      'state ready',
    ])
  })
  test('that is taken back before it was uncordoned is emptied again', () => {
    const object = node({ state: 'maintenance', ...drained }, { ...drained, operation: stanza('node.uncordon') })
    expect(statusOf(plan(object, world([]), NOW))).toMatchObject({ isInMaintenance: false })
  })
  test('of which only the maintenance was taken back is cordoned', () =>
    expect(actionLines(plan(node({ state: 'maintenance', ...drained }, { isCordoned: true }), world([]), NOW))).toEqual(
      ['state cordoned'],
    ))
})

describe('another agent', () => {
  const upgrading = (version: string) =>
    node({ state: 'ready', ...BEFORE }, { operation: stanza('node.agent_upgrade', { arguments: { version } }) })
  test.each<readonly [string, string, Observed, readonly string[]]>([
    [
      'keeps new servers away first',
      '2',
      observed(),
      ['effect audit', 'effect mirror false', 'operation cordoned', 'state cordoned'],
    ],
    ['is waited for', '2', world([guest('a', 'started')]), ['effect audit', 'operation upgraded', 'state cordoned']],
    [
      'is there when it reports its version',
      '1',
      world([guest('a', 'started')]),
      ['effect audit', 'operation succeeded', 'state cordoned'],
    ],
    [
      'does not count while it is silent',
      '1',
      world([], { heartbeat: { renewedAt: 't', ageSeconds: 20 } }),
      ['effect audit', 'operation upgraded', 'state unreachable'],
    ],
  ])('%s', (_why, version, what, expected) =>
    expect(actionLines(plan(upgrading(version), what, NOW))).toEqual(expected),
  )

  test('is no longer wanted once that is cancelled, unless yet another is by now', () => {
    const cancelled = (desiredAgentVersion: string) =>
      node(
        { state: 'ready', ...BEFORE },
        {
          desiredAgentVersion,
          operation: stanza('node.agent_upgrade', { arguments: { version: '2', cancel: 'true' } }),
        },
      )
    const lines = (desired: string) =>
      actionLines(plan(cancelled(desired), world([]), NOW)).filter(
        (line) => line.startsWith('change') || line.startsWith('operation'),
      )
    expect(lines('2')).toEqual(['change {"desiredAgentVersion":null}', 'operation cancelled'])
    expect(lines('3')).toEqual(['operation cancelled'])
  })
})
