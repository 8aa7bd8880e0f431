/** What holds for every server in every world: plans come to rest, and do not move a world that is at rest. `fc.pre`
 *  draws another world where a property says nothing of the one that was drawn. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { plan } from '../../../../controllers/nouns/server/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import type { InstanceStatus } from '../../../../resources/instance/index.ts'
import { applied, ended, instance, isQuiet, newborn, NOW, operation, started, storage, type World } from './worlds.ts'

const TURNS_MAXIMUM = 30
/** These leave the state as they found it. */
const STATELESS: readonly (OperationKind | undefined)[] = ['server.metadata', 'server.firewall']
const kinds = fc.constantFrom<OperationKind>(
  'server.create',
  'server.start',
  'server.stop',
  'server.restart',
  'server.delete',
  'server.metadata',
  'server.firewall',
  'server.rebuild',
  'server.change_plan',
)
const power = fc.constantFrom('running' as const, 'stopped' as const)
const incarnation = fc.integer({ min: 0, max: 3 })
const stopped = fc.constantFrom(
  undefined,
  { id: 'op-1', outcome: 'stopped' as const },
  { id: 'op-1', outcome: 'timed_out' as const },
)

const anyInstance = fc.record({
  power,
  incarnation,
  madeFor: fc.constantFrom('op-0', 'op-1'),
  generation: fc.integer({ min: 1, max: 2 }),
  status: fc.option(
    fc.record({
      state: fc.constantFrom<InstanceStatus['state']>('waiting', 'starting', 'running', 'stopping', 'stopped', 'error'),
      incarnation,
      observedGeneration: fc.integer({ min: 1, max: 2 }),
      endReason: fc.constantFrom('requested' as const, 'guest_shutdown' as const, 'crashed' as const),
      endedAt: fc.constantFrom('2026-01-01T11:59:00.000Z', '2026-01-01T11:40:00.000Z'),
      stop: stopped,
    }),
    { nil: undefined },
  ),
})

const anyWorld: fc.Arbitrary<World> = fc
  .record({
    kind: kinds,
    isEnded: fc.boolean(),
    state: fc.constantFrom(
      'creating' as const,
      'starting' as const,
      'started' as const,
      'stopping' as const,
      'stopped' as const,
      'error' as const,
    ),
    desiredPower: power,
    haPolicy: fc.constantFrom('restart' as const, 'none' as const),
    isProtected: fc.boolean(),
    isDeleted: fc.boolean(),
    isHostReachable: fc.boolean(),
    hasClaims: fc.boolean(),
    isForgotten: fc.boolean(),
    userDataSecretName: fc.constantFrom(undefined, 'user-data'),
    hasStorage: fc.constantFrom(undefined, 'creating' as const, 'online' as const, 'error' as const),
    guest: fc.option(anyInstance, { nil: undefined }),
    crashedAt: fc.subarray([
      '2026-01-01T11:55:00.000Z',
      '2026-01-01T11:56:00.000Z',
      '2026-01-01T11:57:00.000Z',
      '2026-01-01T11:59:00.000Z',
    ]),
  })
  .map((drawn) => {
    const isForgotten = drawn.isForgotten && !drawn.hasClaims
    const { stanza, progress } = ended(drawn.kind, 'op-1')
    const guest =
      drawn.guest &&
      instance(
        { power: drawn.guest.power, incarnation: drawn.guest.incarnation },
        drawn.guest.status && dropUndefined(drawn.guest.status),
        drawn.guest.madeFor,
        drawn.guest.generation,
      )
    return newborn({
      metadata: drawn.isDeleted ? { deletionTimestamp: NOW.toISOString() } : {},
      spec: {
        desiredPower: drawn.desiredPower,
        haPolicy: drawn.haPolicy,
        isProtected: drawn.isProtected,
        ...defined({ userDataSecretName: drawn.userDataSecretName }),
        operation: drawn.isEnded ? stanza : operation(drawn.kind, 'op-1'),
      },
      status: {
        state: drawn.state,
        crashedAt: drawn.crashedAt,
        ...(isForgotten ? { macAddress: '52:54:00:00:00:01' } : {}),
        operation: drawn.isEnded ? progress : ended('server.create').progress,
      },
      observed: {
        isHostReachable: drawn.isHostReachable,
        storage: drawn.hasStorage && storage(drawn.hasStorage),
        ...(drawn.hasClaims ? {} : { claims: undefined }),
        instance: drawn.hasClaims || isForgotten ? guest : undefined,
      },
    })
  })

function dropUndefined<T extends object>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** Plans and applies until nothing changes; the node does nothing meanwhile. */
function rested(from: World): World | 'gone' {
  let world = from
  for (let turn = 0; turn < TURNS_MAXIMUM; turn++) {
    const actions = plan(world.server, world.observed, NOW)
    if (isQuiet(world, actions, NOW)) return world
    const next = applied(world, actions, NOW)
    if (next === 'gone') return 'gone'
    world = next
  }
  throw new Error(`does not come to rest: ${JSON.stringify(plan(world.server, world.observed, NOW))}`)
}

test('a plan comes to rest when the world stands still', () => {
  fc.assert(
    fc.property(anyWorld, (world) => void rested(world)),
    { numRuns: 2_000 },
  )
})

test('at rest nothing moves: the same world gives the same rest', () => {
  fc.assert(
    fc.property(anyWorld, (world) => {
      const rest = rested(world)
      fc.pre(rest !== 'gone')
      expect(rested(rest)).toEqual(rest)
    }),
  )
})

test('incarnations only ever rise, but for the way back of a restart that was not obeyed', () => {
  fc.assert(
    fc.property(anyWorld, (world) => {
      const rest = rested(world)
      const before = world.observed.instance
      fc.pre(rest !== 'gone' && before !== undefined && rest.observed.instance !== undefined)
      const live = before.status?.incarnation ?? 0
      expect(rest.observed.instance.spec.incarnation).toBeGreaterThanOrEqual(Math.min(before.spec.incarnation, live))
    }),
  )
})

test('a server whose deletion was accepted is never started', () => {
  fc.assert(
    fc.property(anyWorld, (world) => {
      fc.pre(world.server.spec.operation?.kind === 'server.delete')
      const actions = plan(world.server, world.observed, NOW)
      expect(actions.some((action) => action.do === 'ensure')).toBe(false)
    }),
  )
})

test('past its deadline every operation ends in one turn, or its record does', () => {
  fc.assert(
    fc.property(anyWorld, ({ server, observed }) => {
      const late = new Date(NOW.getTime() + 24 * 3_600_000)
      const stanza = server.spec.operation
      fc.pre(stanza !== undefined && server.status?.operation?.id !== stanza.id)
      fc.pre(server.metadata.deletionTimestamp === undefined && stanza.kind !== 'server.delete')
      const end = plan(server, observed, late).find((action) => action.do === 'operation')
      expect(end?.do === 'operation' && end.outcome !== undefined).toBe(true)
    }),
  )
})

test('a turn that ends an operation leaves a state that needs none', () => {
  fc.assert(
    fc.property(anyWorld, ({ server, observed }) => {
      const actions = plan(server, observed, NOW)
      const end = actions.find((action) => action.do === 'operation')
      fc.pre(end?.do === 'operation' && end.outcome !== undefined && end.outcome !== 'cancelled')
      fc.pre(server.spec.operation?.kind !== 'server.delete' && !STATELESS.includes(server.spec.operation?.kind))
      const state = actions.find((action) => action.do === 'status')?.status['state']
      expect(['started', 'stopped', 'error']).toContain(state)
    }),
  )
})

test('a server that comes to an error says why', () => {
  fc.assert(
    fc.property(anyWorld, ({ server, observed }) => {
      const status = plan(server, observed, NOW).find((action) => action.do === 'status')?.status
      fc.pre(server.status?.state !== 'error' && status?.['state'] === 'error')
      expect(status['stateDetail']).toMatch(/./)
    }),
  )
})

test('a world that was never disturbed is quiet', () =>
  expect(isQuiet(rested(started()) as World, plan(started().server, started().observed, NOW), NOW)).toBe(true))
